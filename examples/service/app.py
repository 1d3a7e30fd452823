"""A web service whose state survives it: kill it in any way, start it again, and no order is lost or counted twice.

    pip install "understudy[service]"
    SHOP_FOLDER=/var/lib/shop python examples/service/app.py

`POST /orders` is answered once the order lasts on the disk, `GET /customers/{id}` asks the running operator,
`GET /receipts` follows what is committed, `POST /savepoints` takes a savepoint. SIGTERM stops the job with a savepoint.
The next start goes on from there; after a crash, from the newest checkpoint and the orders that came behind it.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import Field
from shop import build

from understudy import AskFailed, Inlet, InletClosed, JobHandle, LocalCluster, SavepointFailed

NAME = "shop"
PATIENCE_S = 20.0
"""How long a request waits while the job restarts; then the client gets 503 and may send it again."""

FOLLOWERS_S = 2
"""How long followers of receipts may hold up the end of the service."""


@dataclass
class Order:
    """`id`: chosen by the client, and the same when it sends the order again."""

    id: str
    customer: str
    cents: Annotated[int, Field(ge=-(2**63), lt=2**63)]  # as the inlet's column: another one is answered with 422


@dataclass
class Shop:
    """What the requests share."""

    job: JobHandle
    orders: Inlet


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    env = build(os.environ["SHOP_FOLDER"], int(os.environ.get("SHOP_CHECKPOINT_MS", "1000")))
    async with LocalCluster(task_managers=2) as cluster:
        job = await cluster.submit_async(env, NAME, resume="latest")
        app.state.shop = Shop(job, job.inlet("orders"))
        yield
        with suppress(SavepointFailed):  # the job restarts just now: the next start goes on from its last checkpoint
            await job.stop_with_savepoint()
            await job


app = FastAPI(lifespan=lifespan)


def shop_of(request: Request) -> Shop:
    shop: Shop = request.app.state.shop
    return shop


@app.post("/orders")
async def order(order: Order, request: Request) -> dict[str, str]:
    """200: the order lasts, and counts once. Any other answer, or none: send it again with the same id."""
    try:
        await shop_of(request).orders.send(asdict(order), timeout=PATIENCE_S)
    except (TimeoutError, InletClosed) as error:
        raise HTTPException(503, str(error)) from error
    return {"id": order.id}


@app.get("/customers/{customer}")
async def customer(customer: str, request: Request) -> dict[str, int]:
    """How many orders, of how much, as far as they are processed."""
    try:
        found: dict[str, int] = await shop_of(request).job.ask("accounts", key=customer, message="", timeout=PATIENCE_S)
    except (TimeoutError, AskFailed) as error:
        raise HTTPException(503, str(error)) from error
    return found


@app.get("/receipts")
async def receipts(request: Request, last_event_id: str | None = Header(None)) -> StreamingResponse:
    """Server-sent events, one per batch, with its cursor as id. A browser that connects again sends the last one."""

    async def events() -> AsyncIterator[str]:
        async for batch in shop_of(request).job.outlet("receipts", after=last_event_id):
            yield f"id: {batch.cursor}\ndata: {json.dumps(list(batch))}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


@app.post("/savepoints")
async def savepoint(request: Request) -> dict[str, str]:
    try:
        return {"path": await shop_of(request).job.trigger_savepoint()}
    except SavepointFailed as error:
        raise HTTPException(503, str(error)) from error


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), timeout_graceful_shutdown=FOLLOWERS_S)
