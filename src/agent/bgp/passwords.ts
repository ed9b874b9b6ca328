/**
 * The passwords of BGP sessions, read from files of this host and from Secrets. They are read when a resource refers to
 * them for the first time, and from time to time again. None of them ever enters a message.
 */
import { PluginError } from "../../errors.ts";
import type { PasswordReference } from "../../model/bgp-fields.ts";
import { type Password, passwordKey } from "../../routing/bgp/facts.ts";

export interface PasswordSources {
  /** `undefined` if there is no such file. */
  readFile(path: string): Promise<string | undefined>;
  /**
   * The value of a key of a Secret in the namespace of the agent. Rejects with the reason if it cannot be read: with a
   * PluginError "resource-missing" or "config-invalid" if that stays so until somebody changes something.
   */
  readSecret(name: string, key: string): Promise<string>;
}

export class Passwords {
  readonly #sources: PasswordSources;
  #references = new Map<string, PasswordReference>();
  #read = new Map<string, Password>();

  constructor(sources: PasswordSources) {
    this.#sources = sources;
  }

  /** By `passwordKey()`. */
  get all(): ReadonlyMap<string, Password> {
    return this.#read;
  }

  /** Why a needed password is not known for now, though it may exist; `undefined` if there is none of this kind. */
  get unreadable(): string | undefined {
    for (const key of this.#references.keys()) {
      const password = this.#read.get(key);
      if (password === undefined) return `${key} has not been read yet`;
      if (password.kind === "unknown" && password.isTransient === true) return password.reason;
    }
    return undefined;
  }

  /** From now on these are needed. Those that have not been read yet are read. */
  async require(references: readonly PasswordReference[]): Promise<void> {
    this.#references = new Map(references.map((reference) => [passwordKey(reference), reference]));
    const missing = [...this.#references].filter(([key]) => this.#read.get(key)?.kind !== "read");
    await this.#readAll(missing);
    for (const key of this.#read.keys()) if (!this.#references.has(key)) this.#read.delete(key);
  }

  /** Reads all again; returns whether one has changed. One that can no longer be read stays as it is: its session works. */
  async refresh(): Promise<boolean> {
    const before = new Map(this.#read);
    await this.#readAll([...this.#references]);
    return !Bun.deepEquals(before, this.#read);
  }

  async #readAll(references: readonly (readonly [string, PasswordReference])[]): Promise<void> {
    await Promise.all(
      references.map(async ([key, reference]) => {
        const password = await this.#readOne(key, reference);
        if (password.kind === "read" || this.#read.get(key)?.kind !== "read") this.#read.set(key, password);
      }),
    );
  }

  async #readOne(key: string, { file, secretKeyRef }: PasswordReference): Promise<Password> {
    try {
      if (secretKeyRef !== undefined) {
        return { kind: "read", text: await this.#sources.readSecret(secretKeyRef.name, secretKeyRef.key) };
      }
      const text = await this.#sources.readFile(file ?? "");
      if (text === undefined) return { kind: "unknown", reason: `${key} does not exist on this node` };
      // Editors end a file with a line break, which is not part of the password.
      return { kind: "read", text: text.replace(/\r?\n$/, "") };
    } catch (failure) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      return { kind: "unknown", reason, isTransient: !isLasting(failure) };
    }
  }
}

/** Whether the failure stays until somebody changes something: there is no such Secret or key, or no API to ask. */
function isLasting(failure: unknown): boolean {
  return failure instanceof PluginError && (failure.kind === "resource-missing" || failure.kind === "config-invalid");
}
