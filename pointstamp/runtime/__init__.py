"""Turns the wheel: steps dataflows, exchanges progress, starts and ends workers."""
