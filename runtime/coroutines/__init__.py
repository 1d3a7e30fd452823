"""Coroutines of operators on an asyncio loop: the thread it runs on, workers, deadlines. Nothing is decided
here about their outcome: see actors/async_calls.
"""
