// Asks models by the official TypeScript client libraries of Anthropic and OpenAI,
// as they are, and prints what these make of the answers, one line each. Their own
// environment says where and with which key.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const say = async (asked, ask) => {
  try {
    console.log(JSON.stringify({ asked, got: await ask() }));
  } catch (e) {
    const { status, code, type, error, message } = e;
    console.log(JSON.stringify({ asked, class: e.constructor.name, status, code, type, error, message }));
  }
};

const anthropic = new Anthropic();
const question = [{ role: 'user', content: 'Why is the sky blue?' }];
const tools = [{ name: 'get_weather', input_schema: { type: 'object' } }];
for (const model of ['messages_text', 'messages_tool', 'messages_invalid', 'messages_overloaded'])
  await say(model, () => anthropic.messages.create({ model, max_tokens: 64, messages: question, tools }));
for (const model of ['messages_text_stream', 'messages_tool_stream', 'messages_broken_stream'])
  await say(model, async () => {
    const s = anthropic.messages.stream({ model, max_tokens: 64, messages: question, tools });
    let events = 0;
    s.on('streamEvent', () => events++);
    const m = await s.finalMessage();
    return { events, content: m.content, stop: m.stop_reason, usage: m.usage };
  });
await say('count_tokens', () => anthropic.messages.countTokens({ model: 'count_tokens', messages: question }));
await say('models', async () => (await anthropic.models.list()).data);

const openai = new OpenAI();
for (const model of ['chat_text', 'chat_tool', 'openai_key', 'openai_quota', 'openai_overloaded'])
  await say(model, () => openai.chat.completions.create({ model, messages: question }));
for (const model of ['chat_text_stream', 'chat_tool_stream', 'chat_broken_stream'])
  for (const usage of [false, true])
    await say(`${model} ${usage}`, async () => {
      const options = usage ? { stream_options: { include_usage: true } } : {};
      const chunks = [];
      for await (const c of await openai.chat.completions.create({ model, messages: question, stream: true, ...options }))
        chunks.push([c.choices, c.usage]);
      return chunks;
    });
for (const model of ['responses_text', 'responses_tool'])
  await say(model, () => openai.responses.create({ model, input: 'Why is the sky blue?' }));
for (const model of ['responses_text_stream', 'responses_tool_stream', 'responses_failed_stream', 'responses_error_stream'])
  await say(model, async () => {
    const kinds = [];
    let last;
    for await (const e of await openai.responses.create({ model, input: 'Why is the sky blue?', stream: true })) {
      kinds.push(e.type);
      last = e;
    }
    return { kinds, last };
  });
await say('embeddings', () => openai.embeddings.create({ model: 'embeddings', input: 'x' }));
await say('models', async () => (await openai.models.list()).data);
