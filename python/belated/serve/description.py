"""The page that describes the API, made from the OpenAPI description and without scripts."""

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from belated.serve.page import read_file


def description_page(api: Mapping[str, Any]) -> str:
    """Return the page for an OpenAPI description."""
    routes = [(path, method, route) for path, methods in api["paths"].items() for method, route in methods.items()]
    answers = [{status: each["description"] for status, each in route["responses"].items()} for *_, route in routes]
    common = sorted(set.intersection(*(set(each.items()) for each in answers if each)))
    problems = "".join(f"<li>{status}: {_text(text)}</li>" for status, text in common)
    parts = [_route(path, method, route, dict(common)) for path, method, route in routes]
    models = [_model(name, each) for name, each in api["components"]["schemas"].items() if "properties" in each]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API of belated</title>
<link rel="icon" href="data:,">
<style>{read_file("page.css")}</style>
</head>
<body>
<header><h1>API of belated {escape(api["info"]["version"])}</h1></header>
<main>
<p>{_text(api["info"]["description"])}</p>
<p>The same description for programs: <a href="/openapi.json">openapi.json</a>.
Studies: <a href="/">the live page</a>.</p>
<p>Every request may be answered with these errors:</p>
<ul>{problems}</ul>
<h2>Requests</h2>
{"".join(parts)}
<h2>Contents of requests and answers</h2>
{"".join(models)}
</main>
</body>
</html>
"""


def _route(path: str, method: str, route: Mapping[str, Any], common: Mapping[str, str]) -> str:
    # The path shows its own parameters.
    parameters = [each for each in route.get("parameters", ()) if each["in"] == "query"]
    fields = [(each["name"], each["schema"], each["required"], each.get("description", "")) for each in parameters]
    body, answers = _json_of(route.get("requestBody", {})), []
    for status, answer in sorted(route["responses"].items()):
        if common.get(status) != answer["description"]:
            content = _json_of(answer)
            about = "" if answer["description"] == "Successful Response" else _text(answer["description"])
            answers.append(f"<li>{status}: {' '.join(filter(None, [_type(content) if content else '', about]))}</li>")
    return (
        f'<section class="card"><h3><code>{method.upper()} {escape(path)}</code></h3><p>{_text(route["summary"])}.</p>'
        + (_fields(fields) if fields else "")
        + (f"<p>Body: {_type(body)}</p>" if body else "")
        + f"<p>Answers:</p><ul>{''.join(answers)}</ul></section>\n"
    )


def _model(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    properties = schema["properties"].items()
    fields = [(each, part, each in required, part.get("description", "")) for each, part in properties]
    heading = f"<h3>{escape(name)}</h3><p>{_text(schema.get('description', ''))}</p>"
    return f'<section class="card" id="{escape(name)}">{heading}{_fields(fields)}</section>\n'


def _fields(fields: list[tuple[str, Mapping[str, Any], bool, str]]) -> str:
    rows = []
    for name, schema, required, about in fields:
        default = json.dumps(schema["default"]) if "default" in schema else "required" if required else ""
        cells = (f"<code>{escape(name)}</code>", _type(schema), escape(default), _text(about))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
    head = '<tr><th scope="col">Name<th scope="col">Type<th scope="col">Default<th scope="col">Meaning</tr>'
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Fields"><table>'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _json_of(message: Mapping[str, Any]) -> Any:
    """Return the schema of the JSON in a request or an answer; None without JSON."""
    return message.get("content", {}).get("application/json", {}).get("schema")


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type that a schema describes, as HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    parts = schema.get("anyOf") or schema.get("allOf")
    if parts:
        return " or ".join(_type(part) for part in parts)
    if "enum" in schema:
        return ", ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(part) for part in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    bounds = [f"≥ {schema['minimum']:g}"] if "minimum" in schema else []
    bounds += [f"≤ {schema['maximum']:g}"] if "maximum" in schema else []
    return escape(" ".join([schema.get("type", "any"), *bounds]))


def _text(text: str) -> str:
    """Return a text as HTML; text between two backticks is code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))
