import { quoted } from "../../quote.ts";
import { UsageError } from "../main/command.ts";

/** The word may be the name of a workload, which can only be known when the datastore is read. */
export class UnknownKind extends UsageError {
  constructor(
    readonly word: string,
    hint: string,
  ) {
    super(`Unknown kind ${quoted(word)}; ${hint}`);
  }
}
