import { quoted } from "../../quote.ts";
import { UsageError } from "../main/command.ts";

export interface NamedPod {
  readonly namespace: string;
  readonly name: string;
}

/** `shop/db-0` */
export function requirePod(text: string): NamedPod {
  const [namespace = "", name = "", ...rest] = text.split("/");
  if (namespace !== "" && name !== "" && rest.length === 0) return { namespace, name };
  throw new UsageError(`${quoted(text)} is not a pod; use NAMESPACE/POD, for example shop/db-0`);
}
