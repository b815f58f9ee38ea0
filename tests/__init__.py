"""The proving ground. Never shipped, and never imported by the product."""
