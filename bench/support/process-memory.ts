/** The memory of one process. */
import { readFileSync } from "node:fs";

export interface ProcessMemory {
  readonly residentBytes: number;
  /** Pages that other processes map too are divided among them. */
  readonly proportionalBytes: number;
  /** Without the pages of files: heap, stacks and compiled code. */
  readonly anonymousBytes: number;
}

export function processMemory(pid: number): ProcessMemory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) * 1024;
  return { residentBytes: bytes("Rss"), proportionalBytes: bytes("Pss"), anonymousBytes: bytes("Anonymous") };
}
