// The official TypeScript client, unchanged: it uses all that the reference
// server has, at the address it is given, and prints what it saw, a JSON value
// on each line.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const url = new URL(process.argv[2]);
const show = (name, value) => console.log(JSON.stringify({ [name]: value }));
const until = async (name, done) => {
  for (let i = 0; i < 100 && !done(); i++) await new Promise((r) => setTimeout(r, 50));
  show(name, done());
};

const client = new Client(
  { name: "typescript", version: "1" },
  { capabilities: { sampling: {}, elicitation: {}, roots: {} } },
);
let logged = 0;
let updated = 0;
client.setNotificationHandler(LoggingMessageNotificationSchema, () => void logged++);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void updated++);
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
client.setRequestHandler(CreateMessageRequestSchema, (r) => {
  show("sampled", r.params.messages);
  return { role: "assistant", model: "none", content: { type: "text", text: "sampled" } };
});
client.setRequestHandler(ElicitRequestSchema, (r) => {
  show("elicited", r.params.message);
  return { action: "accept", content: { username: "ann", email: "ann@example.com" } };
});

const transport = new StreamableHTTPClientTransport(url);
await client.connect(transport);
show("server", client.getServerVersion());
show("capabilities", Object.keys(client.getServerCapabilities()).sort());
show("session", typeof transport.sessionId);
show("protocol", transport.protocolVersion);
await client.ping();

const { tools } = await client.listTools();
show("tools", tools.map((t) => t.name).sort());
const call = async (name, args, options) => {
  try {
    const r = await client.callTool({ name, arguments: args ?? {} }, undefined, options);
    show(name, { isError: r.isError ?? false, content: r.content });
  } catch (e) {
    show(name, { code: e.code });
  }
};
await call("test_simple_text");
await call("test_image_content");
await call("test_multiple_content_types");
await call("test_error_handling");
const steps = [];
// Its answer is the token, which is the gateway's own behind the gateway.
await client.callTool({ name: "test_tool_with_progress" }, undefined, { onprogress: (p) => steps.push(p.progress) });
show("progress", steps);
await client.setLoggingLevel("debug");
await call("test_tool_with_logging");
await until("logged", () => logged > 0);
await call("test_sampling", { prompt: "say" });
await call("test_elicitation", { message: "who are you?" });
await call("no_such_tool");

const { resources } = await client.listResources();
show("resources", resources.map((r) => r.uri).sort());
show("templates", (await client.listResourceTemplates()).resourceTemplates.length);
show("resource", (await client.readResource({ uri: "test://static-text" })).contents);
await client.readResource({ uri: "test://none" }).catch((e) => show("no resource", e.code));
await client.subscribeResource({ uri: "test://watched-resource" });
await until("updated", () => updated > 0);
await client.unsubscribeResource({ uri: "test://watched-resource" });
const { prompts } = await client.listPrompts();
show("prompts", prompts.map((p) => p.name).sort());
show("prompt", (await client.getPrompt({ name: "test_simple_prompt" })).messages);
show("completion", (await client.complete({
  ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
  argument: { name: "arg1", value: "t" },
})).completion);

const many = await Promise.all(Array.from({ length: 20 }, () => client.callTool({ name: "test_simple_text" })));
show("many", many.filter((r) => !r.isError).length);
const abort = new AbortController();
setTimeout(() => abort.abort(), 20);
await client.callTool({ name: "test_tool_with_progress" }, undefined, { signal: abort.signal }).catch(() => show("aborted", true));

await transport.terminateSession();
show("terminated", transport.sessionId === undefined);
await client.close();
