// discord.js as a client of the fake Discord: it does what the test tells, and reports what it saw.
import {
  ActionRowBuilder, ButtonBuilder, ButtonStyle, Client, Events, GatewayIntentBits, MessageFlags, ModalBuilder, Partials,
  StringSelectMenuBuilder, TextInputBuilder, TextInputStyle,
} from 'discord.js';
import { report, told } from './lib.mjs';

const client = new Client({
  intents: [
    GatewayIntentBits.Guilds, GatewayIntentBits.GuildMembers, GatewayIntentBits.GuildMessages, GatewayIntentBits.GuildMessageReactions,
    GatewayIntentBits.GuildMessageTyping, GatewayIntentBits.DirectMessages, GatewayIntentBits.DirectMessageReactions,
    GatewayIntentBits.MessageContent,
  ],
  partials: [Partials.Channel, Partials.Message, Partials.Reaction],
  rest: { api: `${process.env.DISCORD_URL}/api` },
});

// What comes is kept by kind until the test asks for the next of it.
const come = new Map();
const asked = new Map();
function arrive(kind, value) {
  const next = (asked.get(kind) ?? []).shift();
  if (next) next(value);
  else come.set(kind, [...(come.get(kind) ?? []), value]);
}
function next(kind) {
  const [first, ...rest] = come.get(kind) ?? [];
  if (first !== undefined) {
    come.set(kind, rest);
    return Promise.resolve(first);
  }
  return new Promise((resolve) => asked.set(kind, [...(asked.get(kind) ?? []), resolve]));
}
for (const event of [
  Events.MessageCreate, Events.MessageUpdate, Events.MessageDelete, Events.MessageReactionAdd, Events.MessageReactionRemove,
  Events.InteractionCreate, Events.ThreadCreate, Events.ThreadUpdate, Events.ThreadDelete, Events.ChannelCreate,
  Events.TypingStart, Events.GuildCreate, Events.GuildMemberAdd, Events.ShardReady, Events.ShardResume, Events.ShardDisconnect,
]) client.on(event, (...list) => arrive(event, list));
client.on(Events.Error, (error) => report('trouble', { error: String(error) }));
client.on(Events.Warn, (text) => process.stderr.write(`warn: ${text}\n`));
if (process.env.DISCORD_DEBUG) client.on(Events.Debug, (text) => process.stderr.write(`${text}\n`));
client.rest.on('response', (request, response) => {
  if (response.status === 429) arrive('refused', { scope: response.headers.get('x-ratelimit-scope'), global: response.headers.has('x-ratelimit-global') });
});

function seen(message) {
  return {
    id: message.id, channel: message.channelId, guild: message.guildId, author: message.author?.id, name: message.member?.displayName ?? message.author?.displayName,
    content: message.content, type: message.type, reply: message.reference?.messageId ?? null, nonce: message.nonce,
    mentions: [...message.mentions.users.keys()], thread: message.thread?.id ?? null, flags: message.flags.bitfield, edited: message.editedTimestamp !== null,
    buttons: message.components.flatMap((row) => row.components.map((c) => c.label ?? c.placeholder)),
    files: message.attachments.map((file) => ({ name: file.name, size: file.size, url: file.url, type: file.contentType })),
    made: message.createdTimestamp,
  };
}

const channelOf = (id) => client.channels.fetch(id);
const messageOf = async (c) => (await channelOf(c.channel)).messages.fetch({ message: c.message, force: true });
const button = (label, id) => new ButtonBuilder().setLabel(label).setCustomId(id).setStyle(ButtonStyle.Primary);
let interaction; // the newest

const steps = {
  async login() {
    client.login(process.env.DISCORD_TOKEN);
    await new Promise((resolve) => client.once(Events.ClientReady, resolve));
    return {
      user: client.user.id, name: client.user.username,
      guilds: client.guilds.cache.map((guild) => ({ id: guild.id, name: guild.name, members: guild.memberCount, people: guild.members.cache.map((m) => m.displayName).sort() })),
      channels: client.channels.cache.map((channel) => ({ id: channel.id, name: channel.name, type: channel.type })),
      writes: client.guilds.cache.first().channels.cache.first().permissionsFor(client.user).has('SendMessages'),
    };
  },
  // next waits for a message event and shows the message.
  async next(c) {
    const list = await next(c.event);
    return seen(list[list.length - 1]);
  },
  async reaction(c) {
    const [reaction, user] = await next(c.event);
    return { emoji: reaction.emoji.name, message: reaction.message.id, user: user.id };
  },
  async download(c) {
    const response = await fetch(c.url);
    return { status: response.status, text: await response.text() };
  },
  async reply(c) {
    const to = await messageOf(c);
    return seen(await to.reply({ content: c.content, allowedMentions: { repliedUser: false }, components: c.buttons ? [new ActionRowBuilder().addComponents(button('Yes', 'yes'), button('No', 'no'))] : [] }));
  },
  async select(c) {
    const menu = new StringSelectMenuBuilder().setCustomId('model').setPlaceholder('Which?').addOptions({ label: 'Small', value: 's' }, { label: 'Large', value: 'l' });
    return seen(await (await channelOf(c.channel)).send({ content: 'choose', components: [new ActionRowBuilder().addComponents(menu)] }));
  },
  async send(c) {
    return seen(await (await channelOf(c.channel)).send({
      content: c.content, nonce: c.nonce, enforceNonce: c.nonce !== undefined,
      files: c.file ? [{ attachment: Buffer.from(c.file), name: c.name, description: 'words' }] : [],
      embeds: c.embed ? [{ title: c.embed }] : [],
    }));
  },
  async refused(c) {
    try {
      await (await channelOf(c.channel)).send({ content: c.content });
      return { code: 0 };
    } catch (error) {
      return { code: error.code, status: error.status, message: error.message };
    }
  },
  async edit(c) { return seen(await (await messageOf(c)).edit({ content: c.content, files: c.file ? [{ attachment: Buffer.from(c.file), name: c.name }] : [] })); },
  async remove(c) { await (await messageOf(c)).delete(); return {}; },
  async react(c) {
    const message = await messageOf(c);
    await message.react(c.emoji);
    const people = await (await message.fetch(true)).reactions.cache.get(c.emoji).users.fetch();
    return { people: [...people.keys()].sort() };
  },
  async unreact(c) {
    const message = await messageOf(c);
    await message.reactions.cache.get(c.emoji).users.remove(client.user.id);
    return {};
  },
  async history(c) {
    const list = await (await channelOf(c.channel)).messages.fetch({ limit: c.limit, after: c.after, before: c.before, around: c.around, cache: false });
    return { list: list.map((m) => m.content) };
  },
  async typing(c) { await (await channelOf(c.channel)).sendTyping(); return {}; },
  async bulk(c) { return { gone: (await (await channelOf(c.channel)).bulkDelete(c.messages)).size }; },
  async dm(c) { return seen(await (await client.users.fetch(c.user)).send(c.content)); },
  async members(c) {
    const guild = await client.guilds.fetch(c.guild);
    const found = await guild.members.fetch({ query: c.query, limit: 5 });
    return { found: found.map((m) => m.displayName), all: (await guild.members.fetch()).map((m) => m.displayName).sort(), searched: (await guild.members.search({ query: c.query })).size };
  },
  async presence(c) { client.user.setPresence({ status: 'idle', activities: [{ name: c.name }] }); return {}; },

  // Interactions.
  async interaction() {
    [interaction] = await next(Events.InteractionCreate);
    return {
      id: interaction.id, type: interaction.type, custom: interaction.customId ?? null, name: interaction.commandName ?? null, user: interaction.user.id,
      channel: interaction.channelId, guild: interaction.guildId, message: interaction.message?.id ?? null, values: interaction.values ?? null,
      options: interaction.options?.data.map((o) => ({ name: o.name, value: o.value ?? null, user: o.user?.username ?? null, focused: o.focused ?? false })) ?? null,
      focused: interaction.isAutocomplete() ? interaction.options.getFocused() : null,
      fields: interaction.isModalSubmit() ? interaction.fields.getTextInputValue('why') : null,
      sends: interaction.appPermissions?.has('SendMessages') ?? null,
    };
  },
  async update(c) {
    const done = await interaction.update({ content: c.content, components: [], withResponse: true });
    return seen(done.resource.message);
  },
  async answer(c) {
    const done = await interaction.reply({ content: c.content, flags: c.private ? MessageFlags.Ephemeral : undefined, withResponse: true });
    return seen(done.resource.message);
  },
  async defer(c) { await interaction.deferReply({ flags: c.private ? MessageFlags.Ephemeral : undefined }); return {}; },
  async deferUpdate() { await interaction.deferUpdate(); return {}; },
  async editReply(c) { return seen(await interaction.editReply({ content: c.content })); },
  async followUp(c) { return seen(await interaction.followUp({ content: c.content, flags: c.private ? MessageFlags.Ephemeral : undefined })); },
  async deleteReply() { await interaction.deleteReply(); return {}; },
  async complete() { await interaction.respond([{ name: 'Paris', value: 'paris' }, { name: 'Pisa', value: 'pisa' }]); return {}; },
  async modal() {
    const input = new TextInputBuilder().setCustomId('why').setLabel('Why?').setStyle(TextInputStyle.Short);
    await interaction.showModal(new ModalBuilder().setCustomId('reasons').setTitle('Reasons').addComponents(new ActionRowBuilder().addComponents(input)));
    return {};
  },
  async commands(c) {
    const list = [
      { name: 'ask', description: 'Ask something', options: [
        { type: 3, name: 'question', description: 'What', required: true },
        { type: 6, name: 'whom', description: 'Whom' },
      ] },
      { name: 'city', description: 'A city', options: [{ type: 3, name: 'name', description: 'Its name', autocomplete: true }] },
    ];
    const set = c.guild ? await client.application.commands.set(list, c.guild) : await client.application.commands.set(list);
    const extra = await client.application.commands.create({ name: 'extra', description: 'More' });
    await client.application.commands.edit(extra.id, { description: 'Even more' });
    const all = await client.application.commands.fetch();
    await client.application.commands.delete(extra.id);
    return { set: set.map((command) => command.name).sort(), all: all.map((command) => command.description).sort() };
  },

  // Threads.
  async thread(c) {
    const thread = await (await messageOf(c)).startThread({ name: c.name, autoArchiveDuration: 1440 });
    const message = await thread.send(c.content);
    const starter = await thread.fetchStarterMessage();
    let code = 0;
    try { await client.rest.post(`/channels/${c.channel}/messages/${c.message}/threads`, { body: { name: 'again' } }); } catch (error) { code = error.code; }
    return { id: thread.id, parent: thread.parentId, name: thread.name, message: message.id, starter: starter?.content ?? null, joined: thread.joined, again: code };
  },
  async openThread(c) {
    const thread = await (await channelOf(c.channel)).threads.create({ name: c.name, type: c.type });
    await thread.send(c.content);
    return { id: thread.id, type: thread.type };
  },
  async post(c) {
    const thread = await (await channelOf(c.channel)).threads.create({ name: c.name, message: { content: c.content, files: c.file ? [{ attachment: Buffer.from(c.file), name: 'f.txt' }] : [] } });
    return { id: thread.id, starter: (await thread.fetchStarterMessage()).content };
  },
  async threads(c) {
    const guild = await client.guilds.fetch(c.guild);
    return { active: [...(await guild.channels.fetchActiveThreads()).threads.keys()].sort(), archived: [...(await (await channelOf(c.channel)).threads.fetchArchived()).threads.keys()] };
  },
  async threadCreated() {
    const [thread, fresh] = await next(Events.ThreadCreate);
    return { id: thread.id, name: thread.name, fresh };
  },
  async archive(c) { const thread = await channelOf(c.thread); await thread.setName(c.name); await thread.setArchived(true); return { archived: thread.archived }; },

  // The connection.
  async until(c) { await next(c.event); return { ready: client.isReady() }; },
  // limited shows the next refusal for too many requests.
  async limited() { return next('refused'); },
  // limits tells how many more there were.
  async limits() { return { more: (come.get('refused') ?? []).length }; },
  async quit() { await client.destroy(); return {}; },
};

report('started');
for (;;) {
  const command = await told();
  report(command.do, await steps[command.do](command));
}
