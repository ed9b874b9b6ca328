import "./style.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { followAppearance } from "./appearance.ts";
import { runClock } from "./clock.ts";
import { followAddress } from "./route.ts";
import { startSession } from "./session.ts";

followAppearance();
runClock();
// Before the address is read: it may hold a token.
const started = startSession();
followAddress();

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
await started;
