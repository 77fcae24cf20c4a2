"""One call to an OpenAI-compatible endpoint: streamed, capped, timed; failures are told apart, never raised."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bat_core.config.schema import EndpointConfig
from bat_core.errors import ConfigError, VerifierError
from bat_core.model.base import JsonObject

LONGEST = 16 << 10
"""Characters of an answer; a longer one is invalid, whatever it says."""
MOST_BYTES = 2 << 20
"""Bytes of one response, whatever the server sends."""
PAUSE_S = 0.25
LONGEST_PAUSE_S = 20.0
HOPELESS = (400, 401, 403, 404, 422)
"""What a server answers that will not change its mind."""


@dataclass(frozen=True)
class Reply:
    """What came back: text, or the reason why there is none."""

    text: str | None
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    status: int = 0


@dataclass(frozen=True)
class Form:
    """The form of an answer: a name and a JSON schema."""

    name: str
    schema: JsonObject


class TooMuch(Exception):
    """The server sends more than an answer can be."""


class Client:
    """Asks an endpoint. Belongs to one event loop.

    Args:
        settings: Endpoint and limits.
        where: The settings' place in the configuration.

    Raises:
        ConfigError: If the endpoint is no address.
        VerifierError: If the `openai` package is not installed.
    """

    def __init__(self, settings: EndpointConfig, where: str = "verify.judge") -> None:
        self._settings = settings
        _check(settings.endpoint, where)
        try:
            import openai
        except ImportError as error:
            raise VerifierError(
                f"{where} needs the package {error.name}", remedy="pip install 'bat-core[judge]'"
            ) from error
        web = _web()
        transport = _capped(web)(limits=web.Limits(max_connections=settings.concurrency))
        self._http = web.AsyncClient(transport=transport, trust_env=False)
        self._openai = openai.AsyncOpenAI(
            base_url=settings.endpoint,
            api_key=os.environ.get(settings.key_env) or "none",
            timeout=settings.timeout_s,
            max_retries=0,
            http_client=self._http,
        )

    async def ask(self, model: str, messages: Sequence[Mapping[str, str]], seed: int, form: Form) -> Reply:
        """Return the reply of `model`; asked again, later each time, if it could not be reached."""
        reply = Reply(None, "not asked")
        for attempt in range(self._settings.retries + 1):
            if attempt:
                await asyncio.sleep(min(PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S))
            reply = await self._once(model, messages, seed, form)
            if reply.text is not None or reply.status in HOPELESS:
                break
        return reply

    async def _once(self, model: str, messages: Sequence[Mapping[str, str]], seed: int, form: Form) -> Reply:
        import openai

        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await self._call(model, messages, seed, form)
        except TimeoutError:
            return Reply(None, f"no answer within {self._settings.timeout_s:g} s")
        except TooMuch as error:
            return Reply("", str(error))
        except openai.APITimeoutError:
            return Reply(None, f"no answer within {self._settings.timeout_s:g} s")
        except openai.APIStatusError as error:
            return Reply(None, f"HTTP {error.status_code}: {_line(error)}", status=error.status_code)
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, TooMuch):
                return Reply("", str(error.__cause__))
            return Reply(None, f"can't be reached: {_line(error.__cause__ or error)}")
        except Exception as error:  # noqa: BLE001  # boundary: a hostile server may make a foreign client raise anything
            return Reply("", f"answered nonsense: {type(error).__name__}: {_line(error)}")

    async def _call(self, model: str, messages: Sequence[Mapping[str, str]], seed: int, form: Form) -> Reply:
        settings = self._settings
        wanted: dict[str, Any] = {"stream_options": {"include_usage": True}} if settings.stream else {}
        if settings.structured == "schema":
            told = {"name": form.name, "strict": True, "schema": form.schema}
            wanted["response_format"] = {"type": "json_schema", "json_schema": told}
        elif settings.structured == "object":
            wanted["response_format"] = {"type": "json_object"}
        response: Any = await self._openai.chat.completions.create(
            model=model,
            messages=list(messages),
            temperature=settings.temperature,
            max_tokens=settings.answer_tokens,
            seed=seed,
            stream=settings.stream,
            **wanted,
        )
        if settings.stream:
            return await _drain(response)
        usage = response.usage
        return _reply(response.choices[0].message.content or "", usage)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._openai.close()


async def _drain(stream: AsyncIterator[Any]) -> Reply:
    text, usage = "", None
    async for chunk in stream:
        usage = getattr(chunk, "usage", None) or usage
        for choice in (chunk.choices or ())[:1]:
            text += choice.delta.content or ""
        if len(text) > LONGEST:
            raise TooMuch(f"the answer is longer than {LONGEST} characters")
    return _reply(text, usage)


def _reply(text: str, usage: Any) -> Reply:
    counts = [getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens")]
    fine = [count if isinstance(count, int) and count >= 0 else 0 for count in counts]
    return Reply(text, "", fine[0], fine[1])


def _check(endpoint: str, where: str) -> None:
    try:
        parts = urlsplit(endpoint)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine:
        raise ConfigError(f"{where}.endpoint={endpoint!r} is no address", remedy="for example http://127.0.0.1:8000/v1")


def _web() -> Any:
    """Return the HTTP library that the installed `openai` uses: `httpx2` since version 3, `httpx` before."""
    try:
        return importlib.import_module("httpx2")
    except ImportError:
        return importlib.import_module("httpx")


def _capped(web: Any) -> Any:
    """Return a transport class whose responses end with an error when they get too long."""

    class Stream(web.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            seen = 0
            async for part in self.inner:
                seen += len(part)
                if seen > MOST_BYTES:
                    raise TooMuch(f"the response is longer than {MOST_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self.inner.aclose()

    class Transport(web.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            response.stream = Stream(response.stream)
            return response

    return Transport


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
