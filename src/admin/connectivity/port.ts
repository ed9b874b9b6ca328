import { quoted } from "../../quote.ts";
import { UsageError } from "../main/command.ts";

export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UsageError(`${quoted(text)} is not a port`);
  return port;
}
