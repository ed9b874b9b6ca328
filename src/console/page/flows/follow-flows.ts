/** The flows that the address of the view asks for: history first, then what comes. */
import { signal } from "@preact/signals";
import * as v from "valibot";
import { lossWords, type NodeLosses } from "../../../admin/flows/loss-words.ts";
import { type FlowAnswer, flowAnswerSchema } from "../../../flows/flow-answer.ts";
import { parametersOf } from "../../../flows/flow-query.ts";
import { type FlowRecord, flowRecordSchema } from "../../../flows/flow-record.ts";
import { askLines } from "../ask.ts";
import { type Following, keepFollowing, passed } from "../keep-following.ts";
import type { ReadFilters } from "./flow-filter.ts";
import { FlowStore } from "./flow-store.ts";

export const store = new FlowStore();
/** Counts what the store has been given; what is drawn depends on it. */
export const revision = signal(0);
export const flowsFollowing = signal<Following>({ kind: "asking" });
/** Everything that was there when the view was opened has come. */
export const isHistoryRead = signal(false);
/** What the answer does not contain, in words: by the node and what it is about. */
export const missing = signal<ReadonlyMap<string, string>>(new Map());

/** So often the view is drawn again while flows come: less often if it has many, of which each time all are counted. */
const DRAWN_EVERY = 250;
const LONGER_FOR_EACH = 0.01;
const flowLine = v.object({ flow: flowRecordSchema });

export function schemaOfAnswer(line: object): v.GenericSchema<unknown, FlowAnswer> {
  return "flow" in line ? flowLine : flowAnswerSchema;
}

export function forgetFlows(): void {
  store.clear();
  missing.value = new Map();
  isHistoryRead.value = false;
  flowsFollowing.value = { kind: "asking" };
  revision.value += 1;
}

export async function followFlows({ query, follows }: ReadFilters, end: AbortSignal): Promise<void> {
  forgetFlows();
  const parameters = parametersOf(query);
  if (follows) parameters.set("follow", "true");
  const incoming = new Incoming();
  void drawNowAndThen(incoming, end);
  await keepFollowing(
    {
      read: async ({ live, ...request }) => {
        const opened = () => {
          if (follows) live();
        };
        for await (const answer of askLines(`/api/flows?${parameters}`, schemaOfAnswer, { ...request, opened }))
          incoming.take(answer);
        incoming.flush();
        isHistoryRead.value = true;
        return follows ? "again" : "complete";
      },
      tell: (following) => {
        flowsFollowing.value = following;
      },
      forget: forgetFlows,
    },
    end,
  );
}

async function drawNowAndThen(incoming: Incoming, end: AbortSignal): Promise<void> {
  while (!end.aborted) {
    await passed(DRAWN_EVERY + store.size * LONGER_FOR_EACH, end);
    if (!end.aborted) incoming.flush();
  }
}

/** What has come and is not drawn yet. */
class Incoming {
  private flows: FlowRecord[] = [];
  private readonly notes = new Map<string, string>();
  private isHistoryRead = false;

  take(answer: FlowAnswer): void {
    if ("flow" in answer) this.flows.push(answer.flow);
    else if ("problem" in answer) {
      const { node, message } = answer.problem;
      this.notes.set(`problem ${node}`, node === undefined ? message : `node ${node}: ${message}`);
    } else if ("losses" in answer) this.noteLosses(answer.losses);
  }

  flush(): void {
    if (this.notes.size > 0) {
      missing.value = new Map([...missing.value, ...this.notes]);
      this.notes.clear();
    }
    if (this.flows.length > 0) {
      store.add(this.flows);
      this.flows = [];
      revision.value += 1;
    }
    if (this.isHistoryRead) isHistoryRead.value = true;
  }

  /** It is the last line of what was there. */
  private noteLosses(losses: NodeLosses): void {
    for (const [name, words] of lossWords(losses))
      this.notes.set(`${name} ${losses.node}`, `node ${losses.node}: ${words}`);
    this.isHistoryRead = true;
  }
}
