// A bot on Microsoft's botbuilder: what it refuses of the Teams fake is the fake's mistake.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { report, told, fail } from './lib.mjs';

const require = createRequire(import.meta.url);
const bb = require('botbuilder');
const connector = createRequire(require.resolve('botbuilder'))('botframework-connector');
const msal = createRequire(createRequire(require.resolve('botbuilder')).resolve('botframework-connector'))('@azure/msal-node');

const { APP_ID, APP_SECRET, TENANT_ID, OPENID_URL, LOGIN_URL, SERVICE_URL } = process.env;
const authority = `${LOGIN_URL}/${TENANT_ID}`;
const credentials = new connector.MsalServiceClientCredentialsFactory(APP_ID, new msal.ConfidentialClientApplication({
  auth: { clientId: APP_ID, clientSecret: APP_SECRET, authority, knownAuthorities: [new URL(LOGIN_URL).host] },
}));
const adapter = new bb.CloudAdapter(new bb.ConfigurationBotFrameworkAuthentication({
  MicrosoftAppId: APP_ID, MicrosoftAppTenantId: TENANT_ID, MicrosoftAppType: 'SingleTenant', ValidateAuthority: false,
  ToChannelFromBotLoginUrl: authority, ToChannelFromBotOAuthScope: 'https://api.botframework.com', ToBotFromChannelTokenIssuer: 'https://api.botframework.com',
  OAuthUrl: SERVICE_URL, ToBotFromChannelOpenIdMetadataUrl: OPENID_URL, ToBotFromEmulatorOpenIdMetadataUrl: OPENID_URL, CallerId: 'urn:botframework:azure',
}, credentials));
adapter.onTurnError = async (context, error) => report('turn failed', { error: String(error.stack), body: error.body ?? error.details });

const card = (text, actions = []) => bb.CardFactory.adaptiveCard({ type: 'AdaptiveCard', version: '1.4', body: [{ type: 'TextBlock', text }], actions });
const client = (context) => context.turnState.get(context.adapter.ConnectorClientKey);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const words = {
  async reply(context) {
    const sent = await context.sendActivity(`you said: ${bb.TurnContext.removeRecipientMention(context.activity).trim()}`);
    return { id: sent.id, mentions: bb.TurnContext.getMentions(context.activity).length };
  },
  async update(context) {
    const sent = await context.sendActivity('first');
    await context.updateActivity({ ...bb.MessageFactory.text('second'), id: sent.id });
    return { id: sent.id };
  },
  async delete(context) {
    const sent = await context.sendActivity('soon gone');
    await context.deleteActivity(sent.id);
    return { id: sent.id };
  },
  async card(context) {
    const sent = await context.sendActivity(bb.MessageFactory.attachment(card('May I?', [
      { type: 'Action.Execute', title: 'Allow', verb: 'allow', data: { key: 'k1' } },
      { type: 'Action.Submit', title: 'Submit', data: { key: 'k2' } },
    ])));
    return { id: sent.id };
  },
  async members(context) {
    const page = await bb.TeamsInfo.getPagedMembers(context, 1);
    const rest = page.continuationToken ? await bb.TeamsInfo.getPagedMembers(context, 1, page.continuationToken) : { members: [] };
    const one = await bb.TeamsInfo.getMember(context, context.activity.from.id);
    return { names: [...page.members, ...rest.members].map((m) => m.name), mail: one.email, aad: one.aadObjectId };
  },
  async team(context) {
    const details = await bb.TeamsInfo.getTeamDetails(context);
    const channels = await bb.TeamsInfo.getTeamChannels(context);
    return { name: details.name, group: details.aadGroupId, channels: channels.map((c) => c.name ?? 'General') };
  },
  async file(context) {
    const sent = await context.sendActivity({ type: 'message', attachments: [{
      contentType: bb.teamsFileConsent ?? 'application/vnd.microsoft.teams.card.file.consent', name: 'report.txt',
      content: { description: 'the numbers', sizeInBytes: 7, acceptContext: { file: 1 }, declineContext: { file: 1 } },
    }] });
    return { id: sent.id };
  },
  async read(context) {
    const found = [];
    for (const a of context.activity.attachments ?? []) {
      if (a.contentType === 'application/vnd.microsoft.teams.file.download.info') {
        const answer = await fetch(a.content.downloadUrl);
        found.push({ name: a.name, body: await answer.text(), status: answer.status });
      } else if (a.contentType.startsWith('image/')) {
        const id = a.contentUrl.split('/').at(-3);
        const bare = await fetch(a.contentUrl);
        const stream = await client(context).attachments.getAttachment(id, 'original');
        let body = '';
        for await (const chunk of stream.readableStreamBody) body += chunk;
        found.push({ name: 'picture', body, bare: bare.status });
      } else if (a.contentType === 'text/html') {
        found.push({ name: 'mirror', body: a.content });
      }
    }
    return { found };
  },
  async stream(context) {
    const chunk = (type, text, info) => context.sendActivity({ type, text, entities: [{ type: 'streaminfo', ...info }], channelData: info });
    const { id } = await chunk('typing', 'Looking…', { streamType: 'informative', streamSequence: 1 });
    await pause(20);
    await chunk('typing', 'A brown', { streamType: 'streaming', streamSequence: 2, streamId: id });
    await pause(20);
    await chunk('typing', 'A brown fox', { streamType: 'streaming', streamSequence: 3, streamId: id });
    await pause(20);
    await chunk('message', 'A brown fox.', { streamType: 'final', streamId: id });
    return { id };
  },
  async wait(context) {
    const sent = await context.sendActivity('late');
    return { id: sent.id };
  },
  async tooMuch(context) {
    const refusal = (call) => call.then(() => 'none', (error) => `${error.statusCode} ${error.code}`);
    const info = { streamType: 'streaming', streamSequence: 1 };
    return {
      stream: await refusal(context.sendActivity({ type: 'typing', text: 'A', channelData: info, entities: [{ type: 'streaminfo', ...info }] })),
      long: await refusal(context.sendActivity('x'.repeat(28 * 1024 + 1))),
      split: (await context.sendActivity({ ...bb.MessageFactory.attachment(card('a card')), text: 'beside' })).id || 'no id',
      both: await refusal(context.sendActivity('x').then(({ id }) => context.updateActivity({ ...bb.MessageFactory.attachment(card('a card')), text: 'beside', id }))),
      unknown: await refusal(context.updateActivity({ type: 'message', text: 'x', id: '123' })),
    };
  },
  async refused(context) {
    try {
      await context.sendActivity('refused');
    } catch (error) {
      return { status: error.statusCode, code: error.code, message: error.message };
    }
    return {};
  },
};

let reference;
class Bot extends bb.TeamsActivityHandler {
  constructor() {
    super();
    this.onMessage(async (context, next) => {
      reference = bb.TurnContext.getConversationReference(context.activity);
      const a = context.activity;
      if (a.value) {
        report('submitted', { value: a.value, replyToId: a.replyToId });
        return next();
      }
      const word = bb.TurnContext.removeRecipientMention(a)?.trim() ?? a.text;
      const data = await (words[word] ?? words.reply)(context);
      report(word in words ? word : 'reply', { ...data, conversation: a.conversation.id, type: a.conversation.conversationType, aad: a.from.aadObjectId, tenant: a.conversation.tenantId });
      return next();
    });
    this.onReactionsAdded(async (context, next) => {
      report('reaction', { types: context.activity.reactionsAdded.map((r) => r.type), on: context.activity.replyToId });
      return next();
    });
    this.onTeamsMessageEditEvent(async (context, next) => {
      report('edited', { id: context.activity.id, text: context.activity.text });
      return next();
    });
    this.onTeamsMessageSoftDeleteEvent(async (context, next) => {
      report('deleted', { id: context.activity.id });
      return next();
    });
    this.onInstallationUpdateAdd(async (context, next) => {
      report('installed', { by: context.activity.from.aadObjectId });
      return next();
    });
    this.onMembersAdded(async (context, next) => {
      report('added', { members: context.activity.membersAdded.map((m) => m.id) });
      return next();
    });
  }

  async onAdaptiveCardInvoke(context, value) {
    report('executed', { verb: value.action.verb, data: value.action.data, on: context.activity.replyToId });
    return { statusCode: 200, type: 'application/vnd.microsoft.activity.message', value: 'Thanks' };
  }

  async handleTeamsFileConsentAccept(context, response) {
    const body = Buffer.from('numbers');
    const put = await fetch(response.uploadInfo.uploadUrl, {
      method: 'PUT', body, headers: { 'Content-Type': 'application/octet-stream', 'Content-Range': `bytes 0-${body.length - 1}/${body.length}` },
    });
    await context.sendActivity({ type: 'message', attachments: [{
      contentType: 'application/vnd.microsoft.teams.card.file.info', name: response.uploadInfo.name, contentUrl: response.uploadInfo.contentUrl,
      content: { uniqueId: response.uploadInfo.uniqueId, fileType: response.uploadInfo.fileType },
    }] });
    report('accepted', { status: put.status, context: response.context });
  }

  async handleTeamsFileConsentDecline(context, response) {
    report('declined', { context: response.context });
  }
}

const bot = new Bot();

// response is what CloudAdapter wants of a web framework's.
function response(res) {
  return {
    socket: res.socket,
    header: (name, value) => res.setHeader(name, value),
    status: (code) => { res.statusCode = code; },
    send: (body) => {
      if (body === undefined) return;
      if (!res.hasHeader('Content-Type')) res.setHeader('Content-Type', 'application/json');
      res.write(typeof body === 'string' ? body : JSON.stringify(body));
    },
    end: (...args) => res.end(...args),
  };
}

const server = createServer(async (req, res) => {
  let body = '';
  for await (const chunk of req) body += chunk;
  req.body = JSON.parse(body);
  await adapter.process(req, response(res), (context) => bot.run(context));
});
server.listen(0, '127.0.0.1', () => report('ready', { url: `http://127.0.0.1:${server.address().port}/api/messages` }));

for (;;) {
  const command = await told();
  switch (command.do) {
    case 'proactive':
      await adapter.continueConversationAsync(APP_ID, reference, async (context) => {
        const sent = await context.sendActivity('by the way');
        report('proactive', { id: sent.id });
      }).catch(fail);
      break;
    case 'create':
      await adapter.createConversationAsync(APP_ID, 'msteams', SERVICE_URL, 'https://api.botframework.com', {
        isGroup: Boolean(command.channel), bot: { id: `28:${APP_ID}` }, members: command.user ? [{ id: command.user }] : undefined, tenantId: TENANT_ID,
        activity: command.channel ? bb.MessageFactory.text('news') : undefined,
        channelData: command.channel ? { channel: { id: command.channel } } : { tenant: { id: TENANT_ID } },
      }, async (context) => {
        const sent = await context.sendActivity('hello there');
        report('created', { conversation: context.activity.conversation.id, id: sent.id });
      }).catch(fail);
      break;
  }
}
