"""`python -m bot`: the command `ferryman` where its script is not on the path."""

import sys

from bot.cli.main import main

sys.exit(main())
