/** What somebody does with the page of the console, whichever console it is. */
import { expect } from "bun:test";
import type { BrowserPage, Look } from "./browser-page.ts";
import { proofSize } from "./proof-size.ts";

export async function logIn(page: BrowserPage, token: string): Promise<void> {
  await page.type("textbox", /token$/, token);
  await page.click("button", "Log in");
}

/** The looks that each view is read in. */
const LOOKS: readonly Look[] = [
  { width: 1280, height: 800, colours: "light" },
  { width: 390, height: 844, colours: "dark" },
  ...proofSize({
    everyDay: [],
    soak: [
      { width: 1280, height: 800, colours: "dark" },
      { width: 390, height: 844, colours: "light" },
    ] as const,
  }),
];

/** In each look: what the browser complains about, and what not everybody can use. */
async function problemsIn(page: BrowserPage): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const look of LOOKS) {
    await page.show(look);
    const title = `${look.width} pixels, ${look.colours}`;
    const isTooWide = await page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
    const found = [...page.takeComplaints(), ...(await page.violations()), ...(isTooWide ? ["it is too wide"] : [])];
    problems.push(...found.map((problem) => `${title}: ${problem}`));
  }
  await page.show(LOOKS[0] ?? {});
  return problems;
}

export async function expectWell(page: BrowserPage): Promise<void> {
  expect(await problemsIn(page)).toEqual([]);
}
