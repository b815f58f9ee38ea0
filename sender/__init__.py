"""The sender: says what the outbox holds, under the limits, and records what became of it."""
