/** What an answer does not contain, in words on stderr: losses of nodes, and nodes that did not answer. */
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import type { Terminal } from "../main/context.ts";
import { printable } from "../terminal/printable.ts";
import { lossWords, type NodeLosses } from "./loss-words.ts";

/** Tells each of them when it is new or has changed. */
export class MissingNotes {
  /** A node did not answer, or not completely. */
  hasProblem = false;
  private readonly losses = new Map<string, NodeLosses>();
  private readonly told = new Map<string, string>();

  constructor(private readonly terminal: Pick<Terminal, "stderr">) {}

  /** Returns whether the answer was of this kind. */
  take(answer: FlowAnswer): boolean {
    if ("losses" in answer) this.losses.set(answer.losses.node, answer.losses);
    else if ("problem" in answer) {
      this.hasProblem = true;
      const { node, message } = answer.problem;
      this.tell(`problem ${node}`, `Warning: ${node === undefined ? message : `node ${node}: ${message}`}`);
    } else return false;
    return true;
  }

  /** At the end, and while flows are followed. */
  tellLosses(): void {
    for (const [node, losses] of this.losses)
      for (const [name, words] of lossWords(losses)) this.tell(`${name} ${node}`, `Note: node ${node}: ${words}`);
  }

  private tell(about: string, words: string): void {
    if (this.told.get(about) === words) return;
    this.told.set(about, words);
    this.terminal.stderr(`${printable(words)}\n`);
  }
}
