// Slack's own framework, Bolt, in Socket Mode against a fake Slack. The test says what to do; each step reports what
// Bolt saw.
import bolt from '@slack/bolt';
import { report, told } from './lib.mjs';

const { App, SocketModeReceiver, LogLevel } = bolt;
const api = process.env.SLACK_API_URL;
const clientOptions = { slackApiUrl: api, retryConfig: { retries: 3, minTimeout: 50, maxTimeout: 200 } };

const receiver = new SocketModeReceiver({
  appToken: process.env.SLACK_APP_TOKEN,
  clientOptions,
  installerOptions: { clientOptions },
  clientPingTimeout: 500, // also the wait before it connects again
  serverPingTimeout: 5000,
  logLevel: LogLevel.ERROR,
});
const app = new App({ token: process.env.SLACK_BOT_TOKEN, receiver, clientOptions, logLevel: LogLevel.ERROR });

app.error(async (error) => report('failed', { error: error.stack ?? String(error) }));

// Bolt handles events side by side: a mention is told after its message.
const order = new Map();
const after = (ts) => {
  if (!order.has(ts)) {
    const entry = {};
    entry.promise = new Promise((resolve) => Object.assign(entry, { resolve }));
    order.set(ts, entry);
  }
  return order.get(ts);
};

// A message with the word "button" gets a button in its thread, any other is told.
app.message(async ({ message, say, context }) => {
  if (message.subtype === 'message_changed' || message.subtype === 'message_deleted') return;
  report('message', { message, botUserId: context.botUserId, teamId: context.teamId });
  after(message.ts).resolve();
  if (!message.text?.includes('button')) return;
  const posted = await say({
    thread_ts: message.ts,
    text: 'Shall I?',
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: 'Shall I?' } },
      {
        type: 'actions',
        block_id: 'choice',
        elements: [
          { type: 'button', action_id: 'yes', text: { type: 'plain_text', text: 'Yes' }, value: 'v1', style: 'primary' },
          {
            type: 'static_select',
            action_id: 'which',
            placeholder: { type: 'plain_text', text: 'Which' },
            options: [
              { text: { type: 'plain_text', text: 'One' }, value: '1' },
              { text: { type: 'plain_text', text: 'Two' }, value: '2' },
            ],
          },
        ],
      },
    ],
  });
  report('posted', posted);
});

app.event('app_mention', async ({ event, say }) => {
  await after(event.ts).promise;
  report('mention', event);
  const posted = await say({ text: `hello <@${event.user}>`, thread_ts: event.thread_ts ?? event.ts });
  report('answered', posted);
});

app.action('yes', async ({ ack, body, action, client, respond }) => {
  await ack();
  report('clicked', { body, action });
  const updated = await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: `<@${body.user.id}> said yes` });
  await respond({ text: 'noted', response_type: 'ephemeral', replace_original: false });
  report('updated', updated);
});

app.action('which', async ({ ack, action }) => {
  await ack();
  report('picked', action);
});

app.command('/ask', async ({ ack, command, respond }) => {
  await ack({ text: 'thinking' });
  await respond({ text: `you asked ${command.text}` });
  report('command', command);
});

for (const name of ['reaction_added', 'reaction_removed', 'app_home_opened', 'member_joined_channel']) {
  app.event(name, async ({ event }) => report(name, event));
}
for (const subtype of ['message_changed', 'message_deleted']) {
  app.event('message', async ({ event }) => {
    const own = (event.message ?? event.previous_message)?.bot_id;
    if (event.subtype === subtype && !own) report(subtype, event);
  });
}

// What the test asks for, by name. Each reports the result under its name, or the error.
const acts = {
  upload: ({ channel, thread, name, content, comment }) =>
    app.client.files.uploadV2({ channel_id: channel, thread_ts: thread, filename: name, file: Buffer.from(content, 'base64'), initial_comment: comment }),
  async download({ url }) {
    const get = async (token) => {
      const res = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
      return { status: res.status, type: res.headers.get('content-type'), body: Buffer.from(await res.arrayBuffer()).toString('base64') };
    };
    return { with: await get(process.env.SLACK_BOT_TOKEN), without: await get() };
  },
  async stream({ channel, thread, user, team, parts }) {
    const streamer = app.client.chatStream({ channel, thread_ts: thread, recipient_user_id: user, recipient_team_id: team, buffer_size: 8 });
    for (const part of parts) await streamer.append({ markdown_text: part });
    const stopped = await streamer.stop();
    let late = '';
    try {
      await app.client.chat.appendStream({ channel, ts: stopped.ts, markdown_text: 'late' });
    } catch (error) {
      late = error.data?.error ?? String(error);
    }
    return { stopped, late };
  },
  call: ({ method, args }) => app.client.apiCall(method, args),
  pages: async ({ method, args, list }) => {
    const all = [];
    for await (const page of app.client.paginate(method, args)) all.push(...page[list]);
    return { all };
  },
};

receiver.client.on('connected', () => report('connected'));
receiver.client.on('reconnecting', () => report('reconnecting'));
await app.start();
report('ready', await app.client.auth.test());
for (;;) {
  const command = await told();
  if (command.do === 'stop') break;
  try {
    report(command.do, await acts[command.do](command));
  } catch (error) {
    report(command.do, { failed: error.data?.error ?? error.code ?? String(error) });
  }
}
await app.stop();
report('stopped');
