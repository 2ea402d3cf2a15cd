"""A server of `/v1/systemone` that counts tokens: models of this process, and the small model, which counts none."""

import http.server
import json
import threading
import urllib.request


class Server:
    """Serves the small model as `small`, and others by their names: functions of a state and its questions."""

    def __init__(self, small, models):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                text = self.rfile.read(int(self.headers["content-length"]))
                body = json.loads(text)
                if body["model"] == "small":
                    call = urllib.request.Request(f"{small}/v1/systemone", text, {"content-type": "application/json"})
                    with urllib.request.urlopen(call) as reply:
                        answer = json.load(reply)
                else:
                    answers = models[body["model"]](body["state"], body["questions"])
                    answer = {"model": body["model"], "answers": answers}
                # Many tokens a byte, so that rounding is negligible.
                size = sum(len(json.dumps(part)) for part in (body["state"], body["questions"]))
                answer["usage"] = {"input_tokens": size, "output_tokens": 0}
                reply = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
