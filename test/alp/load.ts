/** Requests without a pause from several clients at once; every outcome is counted, with its time. */
import {
  type HttpOutcome,
  type HttpQuestion,
  type HttpTarget,
  openHttpConnection,
} from "../support/http-connection.ts";

export interface Stream {
  readonly target: HttpTarget;
  readonly question: HttpQuestion;
  /** Whether each request opens a connection of its own. */
  readonly connections: "kept" | "new";
}

export interface Outcome {
  /** When the request was sent and answered, in milliseconds of `performance.now()`. */
  readonly sent: number;
  readonly answered: number;
  readonly outcome: HttpOutcome;
}

export interface Load {
  /** The outcomes so far of each stream, in the order of the streams. */
  readonly outcomes: readonly (readonly Outcome[])[];
  stop(): Promise<void>;
}

/** Between two requests of a stream. */
const PAUSE_MILLISECONDS = 4;
/** A packet that is dropped is sent again after a second: a new connection is quicker. */
const PATIENCE_MILLISECONDS = 200;

export function startLoad(streams: readonly Stream[]): Load {
  const outcomes = streams.map((): Outcome[] => []);
  let isRunning = true;
  const run = async ({ target, question, connections }: Stream, index: number) => {
    let connection = openHttpConnection(target, PATIENCE_MILLISECONDS);
    while (isRunning) {
      const sent = performance.now();
      const outcome = await connection.ask(question);
      outcomes[index]?.push({ sent, answered: performance.now(), outcome });
      if (connections === "new") {
        connection[Symbol.dispose]();
        connection = openHttpConnection(target, PATIENCE_MILLISECONDS);
      }
      await Bun.sleep(PAUSE_MILLISECONDS);
    }
    connection[Symbol.dispose]();
  };
  const running = streams.map(run);
  return {
    outcomes,
    async stop() {
      isRunning = false;
      await Promise.all(running);
    },
  };
}

/** Whether the application has received the request: Envoy answers 403 to one that is denied. */
export function isThrough({ outcome }: Pick<Outcome, "outcome">): boolean {
  return typeof outcome === "number" && outcome !== 403;
}
