// The official TypeScript client, unchanged, over standard input and output:
// it starts the command it is given, and prints what it saw, a JSON value on
// each line. The first argument is what stands before the names of tools.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [before, command, ...args] = process.argv.slice(2);
const show = (name, value) => console.log(JSON.stringify({ [name]: value }));
const client = new Client({ name: "typescript", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
await client.ping();

const tools = [];
for (let cursor; ; ) {
  const page = await client.listTools({ cursor });
  tools.push(...page.tools.map((t) => t.name));
  if (!(cursor = page.nextCursor)) break;
}
show("tools", tools.filter((t) => t.startsWith(before)).map((t) => t.slice(before.length)).sort());
for (const name of ["test_simple_text", "test_image_content", "test_multiple_content_types", "test_error_handling"]) {
  const r = await client.callTool({ name: before + name, arguments: {} });
  show(name, { isError: r.isError ?? false, content: r.content });
}
const steps = [];
await client.callTool({ name: before + "test_tool_with_progress" }, undefined, { onprogress: (p) => steps.push(p.progress) });
show("progress", steps);
await client.callTool({ name: before + "no_such_tool" }).then((r) => show("no tool", r.isError), (e) => show("no tool", e.code));
show("resource", (await client.readResource({ uri: "test://static-text" }).catch((e) => e.message)).contents ?? "refused");
const { prompts } = await client.listPrompts();
show("prompts", prompts.map((p) => p.name).filter((p) => p.startsWith(before)).map((p) => p.slice(before.length)).sort());
show("prompt", (await client.getPrompt({ name: before + "test_simple_prompt" })).messages);
const many = await Promise.all(Array.from({ length: 20 }, () => client.callTool({ name: before + "test_simple_text" })));
show("many", many.filter((r) => !r.isError).length);
await client.close();
show("closed", true);
