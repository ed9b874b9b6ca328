/** The MTU of the links: what the config says, else what the node agent found out, else the kernel's choice. */
import { PluginError } from "../errors.ts";
import { readText } from "../linux/files.ts";

const FILE = "mtu";

export function chooseMtu(configured: number | undefined, stateDirectory: string): number | undefined {
  if (configured !== undefined) return configured;
  const path = `${stateDirectory}/${FILE}`;
  const text = readText(path);
  return text === undefined ? undefined : parseMtu(text, path);
}

function parseMtu(text: string, path: string): number {
  const mtu = Number(text.trim());
  if (Number.isInteger(mtu) && mtu >= 68 && mtu <= 65535) return mtu;
  throw new PluginError("config-invalid", `Cannot use the MTU in "${path}": it holds no number from 68 to 65535`);
}
