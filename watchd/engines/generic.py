"""What any server or trainer writes: web servers, training loops, shells and supervisors. Applies beside every engine."""

from __future__ import annotations

from watchd.engines.base import Engine, patterns

_PROGRAM = r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|vllm|sglang|lmdeploy|trtllm-serve|ollama|tritonserver|llama-server|text-generation-launcher|mpirun|srun|gunicorn|uvicorn)"
_SETTINGS = r"(?:[A-Z]\w{1,80}=\S{0,200} ){0,8}"

ENGINE = Engine(
    name="generic",
    opening=patterns(
        # === launch 2: 2025-09-18T14:09:44 ===        ===== attempt 2 =====        >>> try 1
        *(rf"^\W{{2,12}}\b{word} #?\d" for word in ("launch", "attempt", "run", "try")),
        # @@ start 2025-10-13T06:00:00 @@
        *(rf"^\W{{2,12}}\b{word}:? \d{{4}}-\d\d-\d\d" for word in ("start", "started", "starting", "restart")),
        r"^\W{2,12}\brestart(?:ed|ing)?\b[^.]{0,60}\W{2,12}$",
        # + python3 -m sglang.launch_server --model-path …   (set -x)
        rf"^\+ {_SETTINGS}(?:(?:exec|nohup|env|numactl|stdbuf)(?: -\S{{1,40}}| \S{{1,80}}=\S{{0,200}}){{0,8}} )?{_PROGRAM} ",
        # supervisord: spawned: 'sglang' with pid 18;  systemd: Started sglang.service
        r"spawned: '\S{1,80}' with pid \d+",
        r"^(?:.{0,60}systemd\[1\]: )?Started (?!server|local)\S.{0,80}(?:service|Service|\.$)",
    ),
    banner=patterns(r"^Starting gunicorn \d", r"^\$ (?:\S*/)?python[\d.]* "),
    ending=patterns(
        # Killed       Aborted (core dumped)       run.sh: line 3:  4711 Killed                  python …
        *(
            rf"^(?:\S{{1,80}}: line \d+: +\d+ )?{word}(?: +\(core dumped\))?(?: {{3,40}}\S.{{0,400}})?$"
            for word in ("Killed", "Terminated", "Aborted", "Segmentation fault", "Bus error", "Illegal instruction")
        ),
        r"exited with code \d+$",
        r"Main process exited, code=",
        r"exited: \S{1,80} \(exit status \d+; not expected\)",
        r"stopped: \S{1,80} \((?:terminated by|exit status)",
        *(rf"(?:launcher|process|server) {word} with (?:status|code) \d+" for word in ("ended", "exited")),
    ),
    farewell=patterns(
        r"^Finished server process",
        r"^Application shutdown complete",
        r"^Shutting down: Master",
        r"Deactivated successfully",
    ),
    loading=patterns(
        r"^(?:Loading|Capturing|Fetching|Downloading|Compiling|Warming|Tokenizing|Resolving|Initializing|Preprocessing)\b.{0,120}(?:%|\d+/\d+)",
        r"^\S{1,80}\.(?:safetensors|bin|gguf|parquet|tar): +\d+%\|",
        r"^Waiting for application startup",
    ),
    ready=patterns(
        r"^Application startup complete",
        r"^Uvicorn running on ",
        r"^Listening (?:at|on)",
        r"\b(?:warm-?up done, serving|ready to (?:roll|serve))",
    ),
    work=patterns(
        # 10.0.0.1:3 - "POST /v1/chat/completions HTTP/1.1" 200 OK
        r"\"(?:POST|PUT) /\S{0,300} HTTP/[\d.]+\" 2\d\d",
        r"\"GET /(?!health|ready|live|ping|metrics|v1/models|v2/health|-/|\s|favicon)\S{1,300} HTTP/[\d.]+\" 2\d\d",
        #  30%|███       | 1298/4284 [1:44:03<3:59:22, 4.81s/it]
        r"\d{1,9}/\d{1,9} \[\d[\d:]{1,9}<[\d:?]{1,10}, {1,3}[\d.?]{1,9}(?:s/it|it/s|s/\w|\w{1,8}/s)",
        # step   260 loss 1.8795     {'loss': 1.0377, …}    it 20400 ce 1.3415     epoch 2 batch 280/400 loss 0.89
        r"\b(?:step|iter(?:ation)?|epoch|ep|update|it|e)\b[ =:/]{0,6}\d+.{0,80}\b(?:loss|ppl|ce|reward\S{0,8}|mel\S{0,8}|dice|nll|lr|grad\S{0,6}|acc\w{0,8}|\S{0,8}err\S{0,8}|tok/s|sps|steps/s|it/s)\b",
        r"'loss': [\d.]+",
        r"\bbatch(?:es)?[ =]\d+.{0,60}\b(?:failed=\d|p99=|took=|docs=|ms\b)",
        r"\brequest \d+ ok\b",
        r"decode batch, #running-req: [1-9]",
        r"\brequest of \d+ tokens",
        r"\"event\": ?\"request\".{0,200}\"status\": ?2\d\d",
        r"\bval(?:idation)?\b +\d+% ",
        r"\bstep \d+ ok\b",
    ),
    busy=patterns(r"#running-req: [1-9]", r"\brunning=[1-9]\d*\b", r"\bqueue(?:d|_depth)?[=: ]+[1-9]\d*\b"),
    finished=patterns(
        r"\bexit(?:ed)?(?: with)? (?:status|code):? 0\b",
        r"\b\d+ passed\b(?!.*\bfailed\b)",
        r"[Tt]raining (?:complete|completed|finished|done)\b",
        r"'train_runtime': ",
        r"\bfinished successfully\b",
        r"(?i:\b(?:job|run|training|finetuning|fine-tuning) (?:has )?(?:completed|finished|done)\b)",
        r"\bexits successfully\b",
    ),
    request=patterns(
        r"\"(?:GET|POST|PUT) /\S{0,300} HTTP/[\d.]+\" 5\d\d",
        r"^Exception in ASGI application",
        r"\brequest \d+ failed\b",
    ),
    stopping=patterns(
        r"^Shutting down$",
        r"^Waiting for application shutdown",
        r"[Rr]eceived (?:signal )?SIG(?:TERM|INT)\b",
        r"^Handling signal: (?:term|int|quit)$",
        r"[Gg]racefully (?:stopping|shutting down|exiting)",
        r"\bSIGTERM indicating exit request",
        r"^(?:.{0,60}systemd\[1\]: )?Stopping \S.{0,80}(?:service|Service|\.\.\.|…)",
        r"is being drained",
        r"^\^C",
    ),
    fatal=patterns(
        r"^Fatal Python error: ", r"terminate called after throwing an instance of", r"Worker failed to boot"
    ),
    cleanup=patterns(r"resource_tracker: ", r"leaked (?:shared_memory|semaphore) objects"),
)
