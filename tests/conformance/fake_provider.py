"""A fake provider that records its requests and answers by the model's name."""

import hashlib
import json
import threading
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeProvider:
    """A server on a free loopback port, until it is closed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = []
        self.failed_once = set()
        fake_provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                """Logs nothing."""

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                if self.path == "/hook":
                    # A destination of traces.
                    return self.reply(200, {}, {})
                status, headers, answer = fake_provider.answer(self.path, dict(self.headers.items()), body)
                self.reply(status, headers, answer)

            def do_GET(self):
                with fake_provider.lock:
                    self.reply(200, {}, fake_provider.requests)

            def do_DELETE(self):
                with fake_provider.lock:
                    fake_provider.requests.clear()
                self.reply(200, {}, {})

            def reply(self, status, headers, answer):
                body = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        """Stops serving."""
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, headers, body):
        """Returns the status, the headers and the JSON of a response."""
        headers = {name.lower(): value for name, value in headers.items()}
        request, parts = read(headers.get("content-type", ""), body)
        with self.lock:
            self.requests.append({"path": path, "headers": headers, "request": request, "parts": parts})
        model = request["model"]
        if model == "flaky" and not self.has_failed(json.dumps(request["state"])):
            return 529, {"Retry-After": "1"}, {"error": {"message": "overloaded"}}
        if path == "/v1/decisions":
            return 200, {}, openai_answer(request)
        return 200, {}, system_one_answer(request)

    def has_failed(self, state):
        """Returns false for the first call with a state."""
        with self.lock:
            known = state in self.failed_once
            self.failed_once.add(state)
            return known


def read(content_type, body):
    """Returns the JSON of a request and its multipart parts."""
    if not content_type.startswith("multipart/form-data"):
        return json.loads(body), []
    message = BytesParser(policy=HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    request, parts = None, []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if name == "request":
            request = json.loads(content)
        else:
            digest = hashlib.sha256(content).hexdigest()
            parts.append({"name": name, "content_type": part.get_content_type(), "sha256": digest})
    return request, parts


def system_one_answer(request):
    """Answers every question of the System One wire."""
    answers = {name: system_one_question(question) for name, question in request["questions"].items()}
    if request["model"] == "terse":
        # Some hosts of the wire omit derivable members.
        for answer in answers.values():
            answer.pop("legend", None)
            answer.pop("confidence", None)
    return {"model": request["model"], "answers": answers, "usage": {"input_tokens": 20, "output_tokens": 3}}


def system_one_question(question):
    kind = question["type"]
    if kind == "noul":
        return {"type": kind, "noul": 0.75}
    if kind == "choice":
        probabilities = shares(question["criteria"])
        chosen = next(iter(probabilities))
        return {"type": kind, "choice": chosen, "confidence": peak(probabilities), "probabilities": probabilities}
    if kind == "score":
        levels = [str(level) for level in range(len(question["criteria"]))]
        probabilities = shares(levels)
        value = sum(int(level) * p for level, p in probabilities.items())
        legend = dict(zip(levels, question["criteria"]))
        return {
            "type": kind,
            "score": round(value, 2),
            "confidence": round(width(probabilities), 2),
            "legend": legend,
            "probabilities": probabilities,
        }
    return {"type": "box", "box": {"top": 0.2, "bottom": 0.66, "left": 0.19, "right": 0.68}, "confidence": None}


def openai_answer(request):
    """Answers every question of the OpenAI wire; refuses those whose instructions ask for it."""
    return {
        "model": request["model"],
        "answers": [openai_question(question) for question in request["questions"]],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 20,
        },
    }


def openai_question(question):
    name = question.get("name")
    if "refuse" in json.dumps(question["instructions"]):
        return {"type": "refusal", "name": name}
    kind = question["type"]
    if kind == "predicate":
        return {"type": kind, "name": name, "probability": 0.75}
    options = question["choices"] if kind == "choice" else question["levels"]
    probabilities = list(shares([str(place) for place in range(len(options))]).values())
    if kind == "choice":
        table = [{"value": option["value"], "probability": p} for option, p in zip(options, probabilities)]
        return {"type": kind, "name": name, "choice": table[0]["value"], "confidence": 0.5, "probabilities": table}
    table = [
        {"value": place, "label": option["label"], "probability": p}
        for place, (option, p) in enumerate(zip(options, probabilities))
    ]
    value = sum(row["value"] * row["probability"] for row in table)
    return {"type": kind, "name": name, "score": round(value, 2), "confidence": 0.5, "probabilities": table}


def shares(names):
    """Returns a distribution over the names in hundredths: the first is the likeliest, the others have equal shares."""
    names = list(names)
    if len(names) == 1:
        return {names[0]: 1.0}
    other = round(0.4 / (len(names) - 1), 2)
    return {name: other if place else round(1 - other * (len(names) - 1), 2) for place, name in enumerate(names)}


def peak(probabilities):
    count = len(probabilities)
    return 1.0 if count == 1 else round((count * max(probabilities.values()) - 1) / (count - 1), 2)


def width(probabilities):
    count = len(probabilities)
    if count == 1:
        return 1.0
    unit = sum(abs(level - (count - 1) / 2) for level in range(count)) / count
    return max(0.0, 1 - sum(int(level) * p for level, p in probabilities.items()) / unit)
