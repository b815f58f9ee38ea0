"""What the web and the worker role are given: the configuration, and each its own secrets.

Web must never see a bot's token, as it is the process that the internet talks to; the worker has no
use for the webhook's secrets. Each reads only its own, so that a faulty or unreadable one does not
stop the other role.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from storage.lifecycle import BotName
from storage.settings import (
    Reading,
    Secret,
    ServiceEnvironment,
    Settings,
    Token,
    Where,
    service_environment,
)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """All that the web role knows: no token."""

    settings: Settings
    secrets: Mapping[BotName, tuple[Secret, ...]]
    """Each bot's webhook secrets, the newest first; empty where no webhook is served."""
    api_token: Secret | None
    service: ServiceEnvironment

    def secret_values(self) -> list[str]:
        """Every secret held, for the log's redaction."""
        held = [secret for secrets in self.secrets.values() for secret in secrets]
        if self.api_token is not None:
            held.append(self.api_token)
        return [secret.reveal() for secret in held]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """All that the worker role knows: no webhook secret."""

    settings: Settings
    tokens: Mapping[BotName, Token]
    service: ServiceEnvironment

    def secret_values(self) -> list[str]:
        """Every secret held, for the log's redaction."""
        return [token.reveal() for token in self.tokens.values()]


def load_web(
    path: Where | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    webhook: Literal["served", "unused"] = "served",
) -> WebSettings:
    """Read what the web role needs; where updates are polled, the webhook's secrets are not.

    Raises ConfigurationError with all faults.
    """
    reading = Reading(path, environ)
    secrets = reading.webhook_secrets() if webhook == "served" else {}
    api_token = reading.api_token()
    return WebSettings(reading.finish(), secrets, api_token, service_environment(environ))


def load_worker(
    path: Where | None = None, environ: Mapping[str, str] | None = None
) -> WorkerSettings:
    """Read what the worker role needs.

    Raises ConfigurationError with all faults.
    """
    reading = Reading(path, environ)
    tokens = reading.tokens()
    return WorkerSettings(reading.finish(), tokens, service_environment(environ))
