import type { ResourceName } from "../../model/keys.ts";
import { findKind, kindWords, type PublicKind } from "../../model/kinds.ts";
import { isResourceName } from "../../model/metadata.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { quoted } from "../../quote.ts";
import { aliasesOf, kindWithAlias } from "../kinds/aliases.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { kubectlHint } from "../kinds/kubernetes-kinds.ts";
import { type Given, UsageError } from "../main/command.ts";
import { KIND_WORDS, NAMESPACE_OPTION, USUAL_NAMESPACE } from "./options.ts";
import { UnknownKind } from "./unknown-kind.ts";
/** How users name kinds and resources: `ippool blue`, `pools/blue`, `wep prod/name`, `wep/prod/name`, `pools,nodes`. */

/** A kind and the names of its resources; no names means all resources of the kind. */
export interface Selection {
  readonly kind: AdminKind;
  readonly names: readonly ResourceName[];
}

export function kindNamed(word: string): AdminKind {
  const found = findKind(ADMIN_KINDS, word) ?? kindWithAlias(word);
  if (found) return found;
  const other = MANIFEST.test(word) ? `did you mean "-f ${word}"?` : kubectlHint(word);
  const nearest = nearestName(
    word,
    ADMIN_KINDS.flatMap((row) => [...kindWords(row), ...aliasesOf(row)]),
  );
  const hint = nearest === undefined ? `available kinds: ${KIND_WORDS.join(", ")}` : `did you mean "${nearest}"?`;
  throw new UnknownKind(word, other ?? hint);
}

/** The files that `-f` reads in a directory. */
export const MANIFEST = /\.(ya?ml|json)$/;

/** The namespace given with `--namespace`; `undefined` if absent. */
export function namespaceOf(given: Given): string | undefined {
  const namespace = given.values.get(NAMESPACE_OPTION.name);
  if (namespace === undefined || isResourceName(namespace)) return namespace;
  throw new UsageError(`${quoted(namespace)} is not a valid namespace; use lower-case letters, digits, "-" and "."`);
}

/** `KIND NAME…`, `KIND,KIND`, or `KIND/NAME…`. */
export function parseSelections(given: Given): readonly Selection[] {
  const [first, ...names] = given.operands;
  if (first === undefined) throw new UsageError(`A kind is required: ${KIND_WORDS.join(", ")}`);
  const namespace = namespaceOf(given);
  if (first.includes("/")) {
    return given.operands.map((operand) => {
      const [word = "", ...path] = operand.split("/");
      const kind = kindNamed(word);
      return { kind, names: [nameIn(kind, path, namespace)] };
    });
  }
  const kinds = first.split(",").map(kindNamed);
  if (kinds.length > 1 && names.length > 0) throw new UsageError("Names can be given for only one kind at a time");
  return kinds.map((kind) => ({ kind, names: names.map((name) => nameIn(kind, name.split("/"), namespace)) }));
}

/** One `KIND NAME` or `KIND/NAME`; also returns the arguments after it. */
export function parseReference(given: Given): { kind: AdminKind; name: ResourceName; rest: readonly string[] } {
  const [first = "", ...rest] = given.operands;
  const namespace = namespaceOf(given);
  const [word = "", ...path] = first.split("/");
  if (first === "") throw new UsageError(`A kind and a name are required; kinds: ${KIND_WORDS.join(", ")}`);
  const kind = kindNamed(word);
  if (path.length > 0) return { kind, name: nameIn(kind, path, namespace), rest };
  const [name, ...more] = rest;
  if (name === undefined) throw new UsageError(`The name of the ${kind.kind} is required`);
  return { kind, name: nameIn(kind, name.split("/"), namespace), rest: more };
}

/** `ippool/blue`, as `parseSelections` accepts it. */
export function referenceText({ kind }: Pick<PublicKind, "kind">, { name, namespace }: ResourceName): string {
  return [kind.toLowerCase(), ...(namespace === undefined ? [] : [namespace]), name].join("/");
}

function nameIn(kind: PublicKind, path: readonly string[], namespace: string | undefined): ResourceName {
  const [name = "", ...rest] = path.toReversed();
  const [own, ...tooMuch] = rest;
  if (name === "" || tooMuch.length > 0 || (own !== undefined && !kind.namespaced)) {
    throw new UsageError(`${quoted(path.join("/"))} is not a valid ${kind.kind} name`);
  }
  if (own !== undefined && namespace !== undefined && own !== namespace) {
    throw new UsageError(`${quoted(path.join("/"))} conflicts with --namespace ${namespace}`);
  }
  return kind.namespaced ? { name, namespace: own ?? namespace ?? USUAL_NAMESPACE } : { name };
}
