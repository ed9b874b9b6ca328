/**
 * A page in the browser, as somebody uses it: what there is to click or to type into is found by its role and its name, as a screen
 * reader does. Whatever the browser complains about is kept.
 */
import { readFileSync } from "node:fs";
import type { Parameters, Protocol } from "./browser-protocol.ts";
import { pollUntil } from "./poll.ts";

export interface Look {
  readonly width: number;
  readonly height: number;
  readonly colours: "light" | "dark";
}

/** `string`: the whole name. */
export type Name = string | RegExp;

export interface BrowserPage {
  goTo(address: string): Promise<void>;
  /** The value of an expression, which JSON can hold; that of a promise when it is settled. */
  evaluate<Value>(expression: string): Promise<Value>;
  /** Waits until the expression is true. */
  until(condition: string, what: string, limitMilliseconds?: number): Promise<void>;
  /** Waits until the page shows this text. */
  untilText(text: Name, limitMilliseconds?: number): Promise<void>;
  /** All text that can be seen. */
  text(): Promise<string>;
  /** Names of all with this role that assistive technology sees. */
  names(role: string): Promise<readonly string[]>;
  /** Waits for it, scrolls to it, and clicks on the middle of it; fails if something else is there. */
  click(role: string, name: Name): Promise<void>;
  /** In place of what is in the field. */
  type(role: string, name: Name, text: string): Promise<void>;
  /** One key, such as `Tab`, `Enter`, `ArrowDown`, `?`; to what has the focus. */
  press(key: string): Promise<void>;
  /** Role and name of what has the focus. */
  focus(): Promise<string>;
  /** What the browser has complained about since the last call: errors of scripts, of the console, of requests, of the content policy. */
  takeComplaints(): readonly string[];
  /** Violations of WCAG 2.2, levels A and AA, by axe-core; empty without one. */
  violations(): Promise<readonly string[]>;
  show(look: Partial<Look>): Promise<void>;
  /** Moves the pointer out of the way, and waits until nothing moves any more. */
  rest(): Promise<void>;
  /** PNG of what is in the window. */
  screenshot(): Promise<Uint8Array>;
  /** Bytes of objects of scripts that are in use, after a garbage collection. */
  scriptBytes(): Promise<number>;
  close(): Promise<void>;
}

const DEFAULT_LOOK: Look = { width: 1280, height: 800, colours: "light" };

export async function openPage(protocol: Protocol, address: string, look: Partial<Look>): Promise<BrowserPage> {
  const { browserContextId } = await protocol.send<{ browserContextId: string }>("Target.createBrowserContext");
  const created = { url: "about:blank", browserContextId };
  const { targetId } = await protocol.send<{ targetId: string }>("Target.createTarget", created);
  const attached = { targetId, flatten: true };
  const { sessionId } = await protocol.send<{ sessionId: string }>("Target.attachToTarget", attached);
  const page = new Page(protocol, sessionId, browserContextId);
  await page.begin(look);
  await page.goTo(address);
  return page;
}

interface RemoteObject {
  readonly value?: unknown;
  readonly description?: string;
}

interface AccessibleNode {
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
  readonly backendDOMNodeId?: number;
}

class Page implements BrowserPage {
  private complaints: string[] = [];
  private look = DEFAULT_LOOK;

  constructor(
    private readonly protocol: Protocol,
    private readonly sessionId: string,
    private readonly browserContextId: string,
  ) {}

  async begin(look: Partial<Look>): Promise<void> {
    this.protocol.listen(this.sessionId, (method, parameters) => {
      const complaint = complaintOf(method, parameters);
      if (complaint !== undefined) this.complaints.push(complaint);
    });
    for (const domain of ["Page", "Runtime", "Log", "DOM", "Accessibility"]) await this.send(`${domain}.enable`);
    await this.show(look);
  }

  async goTo(address: string): Promise<void> {
    const { errorText } = await this.send<{ errorText?: string }>("Page.navigate", { url: address });
    if (errorText !== undefined) throw new Error(`Cannot open ${address}: ${errorText}`);
    await this.until("document.readyState === 'complete'", `${address} to be loaded`);
  }

  async evaluate<Value>(expression: string): Promise<Value> {
    const { result, exceptionDetails } = await this.send<{ result: RemoteObject; exceptionDetails?: Thrown }>(
      "Runtime.evaluate",
      { expression, awaitPromise: true, returnByValue: true },
    );
    if (exceptionDetails !== undefined)
      throw new Error(`${thrownText(exceptionDetails)} in ${expression.slice(0, 200)}`);
    return result.value as Value;
  }

  async until(condition: string, what: string, limitMilliseconds?: number): Promise<void> {
    try {
      await pollUntil(() => this.evaluate<boolean>(`Boolean(${condition})`), what, limitMilliseconds);
    } catch (cause) {
      const shown = (await this.text().catch(String)).slice(0, 1_500);
      const complaints = this.complaints.join("\n");
      throw new Error(`${cause instanceof Error ? cause.message : cause}; the page shows:\n${shown}\n${complaints}`, {
        cause,
      });
    }
  }

  untilText(text: Name, limitMilliseconds?: number): Promise<void> {
    const shown = "document.body.innerText";
    const condition =
      typeof text === "string" ? `${shown}.includes(${JSON.stringify(text)})` : `${text}.test(${shown})`;
    return this.until(condition, `the page to show ${text}`, limitMilliseconds);
  }

  text(): Promise<string> {
    return this.evaluate("document.body.innerText");
  }

  async names(role: string): Promise<readonly string[]> {
    return (await this.accessible(role)).map(({ name }) => name?.value ?? "");
  }

  async click(role: string, name: Name): Promise<void> {
    const { x, y } = await this.place(await this.find(role, name), `${role} "${name}"`);
    const mouse = { x, y, button: "left", clickCount: 1 };
    for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
      await this.send("Input.dispatchMouseEvent", { type, ...mouse });
  }

  async type(role: string, name: Name, text: string): Promise<void> {
    await this.send("DOM.focus", { backendNodeId: await this.find(role, name) });
    await this.evaluate("document.activeElement.select?.()");
    if (text === "") await this.press("Delete");
    else await this.send("Input.insertText", { text });
  }

  async press(key: string): Promise<void> {
    const [code, number] = KEYS[key] ?? ["", key.toUpperCase().charCodeAt(0)];
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const event = { key, code, windowsVirtualKeyCode: number };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event, ...(text === undefined ? {} : { text }) });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  async focus(): Promise<string> {
    const { result } = await this.send<{ result: { readonly objectId?: string } }>("Runtime.evaluate", {
      expression: "document.activeElement ?? document.body",
    });
    const { nodes } = await this.send<{ nodes: readonly AccessibleNode[] }>("Accessibility.getPartialAXTree", {
      objectId: result.objectId,
      fetchRelatives: false,
    });
    return `${nodes[0]?.role?.value ?? ""} "${nodes[0]?.name?.value ?? ""}"`;
  }

  takeComplaints(): readonly string[] {
    const complaints = this.complaints;
    this.complaints = [];
    return complaints;
  }

  async violations(): Promise<readonly string[]> {
    // What is still moving has colours that nobody reads.
    await this.rest();
    if (!(await this.evaluate<boolean>("'axe' in window"))) await this.evaluate(`${axe()}; undefined`);
    return this.evaluate(AXE_RUN);
  }

  async show(look: Partial<Look>): Promise<void> {
    this.look = { ...this.look, ...look };
    const { width, height, colours } = this.look;
    const isPhone = width < 600;
    const metrics = { width, height, deviceScaleFactor: 1, mobile: isPhone };
    await this.send("Emulation.setDeviceMetricsOverride", metrics);
    const features = [
      { name: "prefers-color-scheme", value: colours },
      { name: "prefers-reduced-motion", value: "reduce" },
    ];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  async rest(): Promise<void> {
    await this.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: 0, y: 0 });
    const moves = "document.getAnimations().some(({ playState }) => playState === 'running')";
    await this.until(`!${moves}`, "an end of all movement");
  }

  async screenshot(): Promise<Uint8Array> {
    const { data } = await this.send<{ data: string }>("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  async scriptBytes(): Promise<number> {
    await this.send("HeapProfiler.collectGarbage");
    return (await this.send<{ usedSize: number }>("Runtime.getHeapUsage")).usedSize;
  }

  async close(): Promise<void> {
    await this.protocol.send("Target.disposeBrowserContext", { browserContextId: this.browserContextId });
  }

  private send<Result>(method: string, parameters?: Parameters): Promise<Result> {
    return this.protocol.send<Result>(method, parameters, this.sessionId);
  }

  private async accessible(role: string): Promise<readonly AccessibleNode[]> {
    const { root } = await this.send<{ root: { readonly nodeId: number } }>("DOM.getDocument", { depth: 0 });
    const wanted = { nodeId: root.nodeId, role };
    const { nodes } = await this.send<{ nodes: readonly AccessibleNode[] }>("Accessibility.queryAXTree", wanted);
    return nodes.filter(({ ignored }) => !ignored);
  }

  /** Waits for it; the first one. */
  private async find(role: string, name: Name): Promise<number> {
    const isMeant = (text: string) => (typeof name === "string" ? text === name : name.test(text));
    let found: number | undefined;
    let seen: readonly string[] = [];
    const look = async () => {
      const nodes = await this.accessible(role);
      seen = nodes.map((node) => node.name?.value ?? "");
      found = nodes.find((node) => isMeant(node.name?.value ?? ""))?.backendDOMNodeId;
      return found !== undefined;
    };
    await pollUntil(look, `a ${role} "${name}"`).catch(async (cause: unknown) => {
      const shown = (await this.text()).slice(0, 1_500);
      throw new Error(`There is no ${role} "${name}" but "${seen.join('", "')}"; the page shows:\n${shown}`, { cause });
    });
    return found ?? 0;
  }

  /** The middle of it, where nothing else may be. */
  private async place(backendNodeId: number, what: string): Promise<{ readonly x: number; readonly y: number }> {
    await this.send("DOM.scrollIntoViewIfNeeded", { backendNodeId });
    const { quads } = await this.send<{ quads: readonly (readonly number[])[] }>("DOM.getContentQuads", {
      backendNodeId,
    });
    const [x1 = 0, y1 = 0, , , x2 = 0, y2 = 0] = quads[0] ?? [];
    const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
    const { object } = await this.send<{ object: { objectId: string } }>("DOM.resolveNode", { backendNodeId });
    const { result } = await this.send<{ result: RemoteObject }>("Runtime.callFunctionOn", {
      objectId: object.objectId,
      functionDeclaration: AT_PLACE,
      arguments: [{ value: x }, { value: y }],
      returnByValue: true,
    });
    if (result.value !== "") throw new Error(`Cannot click ${what}: in its place is ${result.value}`);
    return { x, y };
  }
}

const AT_PLACE = `function (x, y) {
  const found = document.elementFromPoint(x, y);
  const isLabel = this.labels !== undefined && this.labels !== null && [...this.labels].some((label) => label.contains(found));
  return found !== null && (this.contains(found) || found.contains(this) || isLabel) ? "" : String(found?.outerHTML).slice(0, 200);
}`;

/** Key -> its code and its number; of other keys their letter says both. */
const KEYS: Readonly<Record<string, readonly [code: string, number: number]>> = {
  Tab: ["Tab", 9],
  Enter: ["Enter", 13],
  Escape: ["Escape", 27],
  " ": ["Space", 32],
  End: ["End", 35],
  Home: ["Home", 36],
  ArrowLeft: ["ArrowLeft", 37],
  ArrowUp: ["ArrowUp", 38],
  ArrowRight: ["ArrowRight", 39],
  ArrowDown: ["ArrowDown", 40],
  Delete: ["Delete", 46],
};

let axeSource: string | undefined;
function axe(): string {
  axeSource ??= readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");
  return axeSource;
}

const AXE_RUN = `axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  resultTypes: ["violations"],
}).then(({ violations }) => violations.map(({ id, help, nodes }) =>
  id + ": " + help + "\\n" + nodes.slice(0, 5).map(({ html, failureSummary }) => "  " + html.slice(0, 200) + " " + failureSummary).join("\\n")))`;

interface Thrown {
  readonly text: string;
  readonly exception?: RemoteObject;
}

function thrownText({ text, exception }: Thrown): string {
  return `${text} ${exception?.description ?? ""}`.trim();
}

function complaintOf(method: string, parameters: Parameters): string | undefined {
  switch (method) {
    case "Runtime.exceptionThrown": {
      const { exceptionDetails } = parameters as { exceptionDetails: Thrown };
      return thrownText(exceptionDetails);
    }
    case "Runtime.consoleAPICalled": {
      const { type, args } = parameters as { type: string; args: readonly RemoteObject[] };
      const words = args.map(({ value, description }) => description ?? String(value));
      return type === "error" || type === "warning" || type === "assert" ? words.join(" ") : undefined;
    }
    case "Log.entryAdded": {
      const { entry } = parameters as { entry: { level: string; text: string; url?: string } };
      return entry.level === "error" || entry.level === "warning"
        ? `${entry.text} ${entry.url ?? ""}`.trim()
        : undefined;
    }
    default:
      return undefined;
  }
}
