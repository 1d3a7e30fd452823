"""Coroutines of operators on an asyncio loop: the thread it runs on, workers, deadlines. What becomes of them is not
decided here: see actors/async_calls.
"""
