import { identity } from "../../identity.ts";

export function App() {
  return <h1>{identity.title}</h1>;
}
