/**
 * In a test build alone: a part of the agent that keeps its process from doing
 * anything else, as a long calculation would. The variable says when: with
 * `block /run/here` from the time that this file exists until it is gone.
 */
import { existsSync } from "node:fs";
import type { AgentPart } from "../agent/supervise.ts";
import { identity } from "../identity.ts";
import { say } from "./node-log.ts";

const ORDER = "block ";
const LOOK_MILLISECONDS = 10;

export function blockingParts(): readonly AgentPart[] {
  const order = process.env[`${identity.environmentPrefix}FAULT`] ?? "";
  return order.startsWith(ORDER) ? [blockingPart(order.slice(ORDER.length))] : [];
}

function blockingPart(path: string): AgentPart {
  return {
    name: "the blocking part",
    async run(signal) {
      while (!signal.aborted) {
        await Bun.sleep(LOOK_MILLISECONDS);
        if (!existsSync(path)) continue;
        say("blocked");
        while (existsSync(path)) Bun.sleepSync(LOOK_MILLISECONDS);
        say("blocked no longer");
      }
    },
  };
}
