/**
 * Only in a test build: a part of the agent that keeps its process busy, as a
 * long calculation would. With the variable set to `block /run/here` it blocks
 * the process as long as that file exists. A second variable is the time after
 * which a blocked process is ended.
 */
import { existsSync } from "node:fs";
import type { AgentPart } from "../agent/supervise.ts";
import { identity } from "../identity.ts";
import { say } from "./node-log.ts";

const ORDER = "block ";
const POLL_MILLISECONDS = 10;

export function blockingParts(): readonly AgentPart[] {
  const order = process.env[`${identity.environmentPrefix}FAULT`] ?? "";
  return order.startsWith(ORDER) ? [blockingPart(order.slice(ORDER.length))] : [];
}

export function watchLimit(): { readonly limitMilliseconds?: number } {
  const text = process.env[`${identity.environmentPrefix}FAULT_LIMIT`];
  return text === undefined ? {} : { limitMilliseconds: Number(text) };
}

function blockingPart(path: string): AgentPart {
  return {
    name: "the blocking part",
    async run(signal) {
      while (!signal.aborted) {
        await Bun.sleep(POLL_MILLISECONDS);
        if (!existsSync(path)) continue;
        say("blocked");
        while (existsSync(path)) Bun.sleepSync(POLL_MILLISECONDS);
        say("no longer blocked");
      }
    },
  };
}
