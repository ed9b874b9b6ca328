/** A resource as an operator writes it. */
import { API_VERSION } from "../../src/identity.ts";

export function resource(kind: string, name: string, spec: object, metadata: object = {}): object {
  return { apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec };
}
