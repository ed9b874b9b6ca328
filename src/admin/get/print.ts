/** Formats resources for stdout, in the requested format. */

import { formatYaml } from "../../yaml.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { Given } from "../main/command.ts";
import type { Call, Clock, Terminal } from "../main/context.ts";
import { referenceText } from "../resources/reference.ts";
import type { Stored } from "../resources/stored.ts";
import { stdoutPage } from "../terminal/page.ts";
import { printTemplate } from "./jsonpath/print.ts";
import type { OutputFormat } from "./output-format.ts";
import { ResourceTables, type TableRow } from "./resource-tables.ts";

export interface Answer {
  /** The requested kinds, whether resources were found or not. */
  readonly kinds: readonly AdminKind[];
  readonly found: readonly Stored[];
  /** One resource was requested by name: it is printed without a list around it. */
  readonly isSingle: boolean;
}

export const EVENTS = { put: "ADDED", change: "MODIFIED", delete: "DELETED" } as const;
export type WatchEvent = TableRow & { readonly event: (typeof EVENTS)[keyof typeof EVENTS] };

/** Prints the resources of one command; keeps the widths of table columns while it watches. */
export class ResourcePrinter {
  private readonly tables: ResourceTables;
  private readonly showsEvent: boolean;

  constructor(
    private readonly format: OutputFormat,
    { switches }: Given,
    context: Pick<Call, "env"> & Pick<Terminal, "isTerminal" | "terminalWidth"> & Pick<Clock, "now">,
  ) {
    this.showsEvent = switches.has("output-watch-events");
    const layout = {
      showsNamespace: switches.has("all-namespaces"),
      showsLabels: switches.has("show-labels"),
      hasHeader: !switches.has("no-headers"),
      showsEvent: this.showsEvent,
      page: stdoutPage(context),
    };
    const columns =
      format.kind === "custom-columns"
        ? format.columns
        : format.kind === "wide"
          ? ("wide" as const)
          : ("usual" as const);
    this.tables = new ResourceTables({ ...layout, columns }, () => context.now());
  }

  /** Whether nothing is printed if nothing was found. */
  get isTable(): boolean {
    return ["table", "wide", "custom-columns"].includes(this.format.kind);
  }

  list(answer: Answer): string {
    switch (this.format.kind) {
      case "json":
        return `${JSON.stringify(asDocument(answer), undefined, 2)}\n`;
      case "yaml":
        return formatYaml(asDocument(answer));
      case "name":
        return answer.found.map(nameLine).join("");
      case "jsonpath":
        return printTemplate(this.format.template, asDocument(answer));
      case "table":
      case "wide":
      case "custom-columns":
        return this.tables.write(answer.found.map((stored) => ({ stored, event: "" })));
    }
  }

  /** Each resource on its own, as it comes from a watch. */
  events(events: readonly WatchEvent[]): string {
    const { format } = this;
    const documents = events.map(({ stored, event }) =>
      this.showsEvent ? { type: event, object: stored.resource } : stored.resource,
    );
    switch (format.kind) {
      case "json":
        return documents.map((document) => `${JSON.stringify(document, undefined, 2)}\n`).join("");
      case "yaml":
        return documents.map((document) => `---\n${formatYaml(document)}`).join("");
      case "name":
        return events.map(({ stored }) => nameLine(stored)).join("");
      case "jsonpath":
        return documents.map((document) => printTemplate(format.template, document)).join("");
      case "table":
      case "wide":
      case "custom-columns":
        return this.tables.write(events);
    }
  }
}

function nameLine({ kind, resource }: Stored): string {
  return `${referenceText(kind, resource.metadata)}\n`;
}

/** The apiVersion of a list with members of several API groups, as in the orchestrator's own lists. */
const MIXED_API_VERSION = "v1";

/** A document that `-f` can read again. */
function asDocument({ kinds: asked, found, isSingle }: Answer): unknown {
  const [first] = found;
  if (isSingle && first) return first.resource;
  const kinds = new Set(found.map(({ kind }) => kind.kind));
  const apiVersions = new Set(asked.map(({ codec }) => codec.apiVersion));
  return {
    apiVersion: apiVersions.size === 1 ? [...apiVersions].join("") : MIXED_API_VERSION,
    kind: kinds.size === 1 ? `${[...kinds].join("")}List` : "List",
    items: found.map(({ resource }) => resource),
  };
}
