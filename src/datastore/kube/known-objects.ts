/**
 * The metadata of objects seen last: a write at the same version needs the UID,
 * and what others added to the object, of some kinds in their status too. Bounded; what is not known is read again.
 */
import type { ApiObject } from "./api.ts";

const OBJECTS_KNOWN = 4_096;

export class KnownObjects {
  private readonly objects = new Map<string, ApiObject>();

  /** `status`: what a write needs of it. */
  remember(key: string, { metadata }: ApiObject, status?: unknown): void {
    const { managedFields: _, ...rest } = metadata;
    this.objects.delete(key);
    this.objects.set(key, { metadata: rest, ...(status === undefined ? {} : { status }) });
    const [oldest] = this.objects.keys();
    if (this.objects.size > OBJECTS_KNOWN && oldest !== undefined) this.objects.delete(oldest);
  }

  /** The object with this key, at this version if one is given. */
  find(key: string, revision: string | undefined): ApiObject | undefined {
    const object = this.objects.get(key);
    return revision === undefined || object?.metadata.resourceVersion === revision ? object : undefined;
  }
}
