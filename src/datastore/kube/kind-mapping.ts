/**
 * How the records of one kind are stored in the API: key <-> place, text <-> object.
 *
 * One row per kind (`product-mapping.ts`); the store itself knows no kind.
 */
import { PluginError } from "../../errors.ts";
import type { KubeRequest, KubeResponse } from "../../kube/api.ts";
import { statusOfRefusal } from "../../kube/require-ok.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";

/** Objects to list or watch together: `/apis/vendor.org/v3/ippools`, narrowed down by a selector. */
export interface Collection {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Its definition is not one of this product: while the API has none, there are no objects. */
  readonly isOptional?: true;
}

/** Whether the failure means that the API does not have this collection, and need not have it. */
export function isAbsence({ isOptional }: Collection, failure: unknown): boolean {
  return isOptional === true && statusOfRefusal(failure) === 404;
}

/** The same for the same objects. */
export function nameOf({ path, query }: Collection): string {
  return JSON.stringify([path, query]);
}

/** The record that an object stands for. Without a value it has a key, but is not a record now. */
export interface ObjectRecord {
  readonly key: string;
  readonly value?: string;
}

/** What a write needs to know of the object that it replaces. */
export type Existing = ApiObject | undefined;

/** The requests of one write. Each is sent once; the store finds out what became of it. */
export interface Writing {
  readonly request: KubeRequest;
  /** Whether this object is the result of the write: asked if its response was lost. */
  readonly isResult: (object: ApiObject) => boolean;
  /** A response, besides 409, that means that the object has changed since it was read. */
  readonly staleIf?: (response: KubeResponse) => boolean;
}

/** Keeps an object while objects of another kind need it. */
export interface Protection {
  readonly isProtected: (object: ApiObject) => boolean;
  readonly protect: (path: string, object: ApiObject) => Writing;
  /** After its deletion: nothing needs it any more. */
  readonly release: (path: string, object: ApiObject) => Writing;
}

export interface KindMapping {
  /** All keys of the kind begin with it, and no others. */
  readonly prefix: string;
  /** A commit that expects an object of this kind, and creates one that needs it, protects it. */
  readonly protection?: Protection;
  /** Objects of this kind need the protected object that their commit expects. */
  readonly needsProtection?: true;
  /** In one read, those that are "last" are read after those that are "first". */
  readonly order?: "first" | "last";
  /** The object exists before its record does, and after it: a record is a part of it. */
  readonly existsBefore?: true;
  /** What its writes need of the status of the object that they replace. */
  readonly neededStatus?: (status: unknown) => object;
  /** The path of the object with this key; `undefined` if there cannot be one. */
  readonly path: (key: string) => string | undefined;
  /** Where the objects with keys below a prefix are: the kind's own prefix, or a longer one. `node`: only its objects are needed. */
  readonly collections: (prefix: string, node?: string) => readonly Collection[];
  readonly record: (object: ApiObject) => ObjectRecord | undefined;
  /** `node`: whose record it is, if the change says so. */
  readonly create: (key: string, value: string, existing: Existing, node?: string) => Writing;
  readonly update: (key: string, value: string, existing: ApiObject, node?: string) => Writing;
  readonly remove: (key: string, existing: ApiObject) => Writing;
}

/** The kind of a key. Throws for a key of none: such a record cannot be stored in the API. */
export function mappingOf(mappings: readonly KindMapping[], key: string): KindMapping {
  const found = mappings.find(({ prefix }) => key.startsWith(prefix));
  if (found) return found;
  throw new PluginError("internal", `Cannot store ${quoted(key)} in the Kubernetes API: no kind has this key`);
}

/** The kinds that may have keys below the prefix, each with the prefix of its own keys. */
export function mappingsBelow(
  mappings: readonly KindMapping[],
  prefix: string,
): readonly { readonly mapping: KindMapping; readonly prefix: string }[] {
  return mappings.flatMap((mapping) => {
    if (prefix.startsWith(mapping.prefix)) return [{ mapping, prefix }];
    return mapping.prefix.startsWith(prefix) ? [{ mapping, prefix: mapping.prefix }] : [];
  });
}

/** Of records that are derived from objects of the orchestrator. `reason`: "it is an object of the orchestrator". */
export function readOnly(reason: string): Pick<KindMapping, "create" | "update" | "remove"> {
  const refuse = (key: string): never => {
    throw new PluginError("internal", `Cannot write ${quoted(key)}: ${reason}`);
  };
  return { create: refuse, update: refuse, remove: refuse };
}
