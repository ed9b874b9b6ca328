/** The MTU of the links: from the config, else from the node agent's file, else the kernel's default. */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import type { Surroundings } from "./session.ts";

const FILE = "mtu";

export function chooseMtu(
  configured: number | undefined,
  { stateDirectory, readText }: Pick<Surroundings, "stateDirectory" | "readText">,
): number | undefined {
  if (configured !== undefined) return configured;
  const path = `${stateDirectory}/${FILE}`;
  const text = readText(path);
  return text === undefined ? undefined : parseMtu(text, path);
}

function parseMtu(text: string, path: string): number {
  const mtu = Number(text.trim());
  if (Number.isInteger(mtu) && mtu >= 68 && mtu <= 65535) return mtu;
  throw new PluginError("config-invalid", `Cannot use the MTU in ${quoted(path)}: expected a number from 68 to 65535`);
}
