"""The status page: what an operator sees at a glance, without anybody's words."""
