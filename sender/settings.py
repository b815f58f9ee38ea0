"""What the sender role is given: the configuration, the bots' tokens and those of other channels.

The webhook's secrets are read only by the command that tells them to Telegram, never by the role
itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
class SenderSettings:
    """All that the sender role knows: no webhook secret."""

    settings: Settings
    tokens: Mapping[BotName, Token]
    service: ServiceEnvironment
    channel_tokens: Mapping[str, Secret] = field(default_factory=dict)
    """The bearer token of each channel beside Telegram."""

    def secret_values(self) -> list[str]:
        """Every secret held, for the log's redaction."""
        held = (*self.tokens.values(), *self.channel_tokens.values())
        return [secret.reveal() for secret in held]


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """What is needed to tell Telegram where to post updates, and with which secret."""

    settings: Settings
    tokens: Mapping[BotName, Token]
    secrets: Mapping[BotName, tuple[Secret, ...]]
    """Each bot's webhook secrets; the first is the one to set."""

    def secret_values(self) -> list[str]:
        """Every secret held, for the log's redaction."""
        held = [secret for secrets in self.secrets.values() for secret in secrets]
        return [secret.reveal() for secret in (*self.tokens.values(), *held)]


def load_sender(
    path: Where | None = None, environ: Mapping[str, str] | None = None
) -> SenderSettings:
    """Read what the sender role needs.

    Raises ConfigurationError with all faults.
    """
    reading = Reading(path, environ)
    tokens = reading.tokens()
    channel_tokens = reading.channel_tokens()
    return SenderSettings(reading.finish(), tokens, service_environment(environ), channel_tokens)


def load_webhook(
    path: Where | None = None, environ: Mapping[str, str] | None = None
) -> WebhookSettings:
    """Read what setting a webhook needs.

    Raises ConfigurationError with all faults.
    """
    reading = Reading(path, environ)
    tokens = reading.tokens()
    secrets = reading.webhook_secrets()
    return WebhookSettings(reading.finish(), tokens, secrets)
