/** The message about an unknown key. */

import { nearestName } from "../model/nearest-name.ts";
import type { Entries } from "./field.ts";
import { type ConfigPath, pathText } from "./problem.ts";
import { redactValue } from "./redact.ts";
import { networkConfigFields } from "./schema.ts";

/** Names the nearest known field. The value may be a secret and is not shown. */
export function unknownKeyText(path: ConfigPath): string {
  const nearest = nearestField(path);
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `"${redactValue(pathText(path))}" is not a known field and is ignored${hint}`;
}

/** No field has a name of this length, and comparing long names takes time. */
const LONGEST_NAME = 64;

function nearestField(path: ConfigPath): string | undefined {
  const fields: Entries = networkConfigFields();
  const section = path.length > 1 ? fields[String(path[0])] : undefined;
  const known = section?.kind === "section" ? section.fields : fields;
  const key = String(path.at(-1));
  return key.length > LONGEST_NAME ? undefined : nearestName(key, Object.keys(known));
}
