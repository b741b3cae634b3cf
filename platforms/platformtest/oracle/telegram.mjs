// A bot on grammY: what it can't do with the Telegram fake is the fake's mistake.
import { createServer } from 'node:http';
import { Bot, GrammyError, InlineKeyboard, InputFile, InputMediaBuilder, webhookCallback } from 'grammy';
import { report, told, fail } from './lib.mjs';

const { TOKEN, API_ROOT } = process.env;
const bot = new Bot(TOKEN, { client: { apiRoot: API_ROOT } });
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

// obeying waits as long as the service asks and tries again.
async function obeying(call) {
  for (let waits = 0; ; waits++) {
    try {
      return { result: await call(), waits };
    } catch (error) {
      if (!(error instanceof GrammyError) || error.error_code !== 429) throw error;
      await pause(error.parameters.retry_after);
    }
  }
}

const refusal = async (call) => {
  try {
    await call();
    return 'none';
  } catch (error) {
    if (!(error instanceof GrammyError)) throw error;
    return error.description;
  }
};

async function download(ctx) {
  const file = await ctx.getFile();
  const answer = await fetch(`${API_ROOT}/file/bot${TOKEN}/${file.file_path}`);
  return { body: await answer.text(), size: file.file_size };
}

bot.command('start', async (ctx) => {
  await ctx.reply('welcome');
  report('command', { args: ctx.match, me: ctx.me.username });
});
bot.on('message:text', async (ctx) => {
  switch (ctx.message.text) {
    case 'reply': {
      const sent = await ctx.reply('<b>bold</b> &amp; <i>plain</i>', { parse_mode: 'HTML', reply_parameters: { message_id: ctx.message.message_id } });
      return report('reply', { id: sent.message_id, text: sent.text, entities: sent.entities, to: sent.reply_to_message?.message_id, thread: sent.message_thread_id, chat: ctx.chat.type });
    }
    case 'keyboard': {
      const sent = await ctx.reply('choose', { reply_markup: new InlineKeyboard().text('Yes', 'y:1').text('No', 'n:1').row().text('Later', 'l:1') });
      return report('keyboard', { id: sent.message_id, rows: sent.reply_markup.inline_keyboard.length });
    }
    case 'files': {
      const document = await ctx.replyWithDocument(new InputFile(Buffer.from('numbers'), 'report.txt'), { caption: 'the numbers' });
      const again = await ctx.replyWithDocument(document.document.file_id);
      const photo = await ctx.replyWithPhoto(new InputFile(Buffer.from('pixels'), 'a.png'));
      const album = await ctx.replyWithMediaGroup([
        InputMediaBuilder.photo(new InputFile(Buffer.from('one'), '1.png'), { caption: 'two of them' }), InputMediaBuilder.photo(new InputFile(Buffer.from('two'), '2.png')),
      ]);
      return report('files', { again: again.document.file_name, name: document.document.file_name, caption: document.caption, sizes: photo.photo.length, album: album.map((m) => m.media_group_id) });
    }
    case 'react':
      await ctx.react('👀');
      await ctx.react('👍');
      return report('react', { refused: await refusal(() => ctx.react('🦖')) });
    case 'refusals': {
      const sent = await ctx.reply('same');
      const said = [
        await refusal(() => ctx.api.editMessageText(ctx.chat.id, sent.message_id, 'same')),
        await refusal(() => ctx.api.sendMessage(12345, 'x')),
        await refusal(() => ctx.reply('<b>open', { parse_mode: 'HTML' })),
        await refusal(() => ctx.api.deleteMessage(ctx.chat.id, 1)),
      ];
      await ctx.api.deleteMessage(ctx.chat.id, sent.message_id);
      return report('refusals', { said });
    }
    case 'patience': {
      const { result, waits } = await obeying(() => ctx.reply('late'));
      return report('patience', { id: result.message_id, waits });
    }
    case 'menu':
      await ctx.replyWithChatAction('typing');
      await ctx.api.setMyCommands([{ command: 'status', description: 'What goes on' }]);
      return report('menu', { commands: await ctx.api.getMyCommands(), chat: (await ctx.getChat()).type });
    default:
      await ctx.reply(`heard ${ctx.message.text}`);
      return report('heard', { text: ctx.message.text, from: ctx.from.first_name });
  }
});
bot.on('message:document', async (ctx) => report('document', { ...(await download(ctx)), name: ctx.message.document.file_name, caption: ctx.message.caption }));
bot.on('message:photo', async (ctx) => report('photo', await download(ctx)));
bot.on('callback_query:data', async (ctx) => {
  await ctx.answerCallbackQuery({ text: 'Thanks' });
  await ctx.editMessageText(`chose ${ctx.callbackQuery.data}`);
  report('pressed', { data: ctx.callbackQuery.data, on: ctx.callbackQuery.message.message_id, again: await refusal(() => ctx.answerCallbackQuery()) });
});
bot.on('message_reaction', (ctx) => report('reaction', ctx.reactions()));
bot.on('edited_message:text', (ctx) => report('edited', { id: ctx.editedMessage.message_id, text: ctx.editedMessage.text }));
bot.catch(({ error }) => fail(error));

const allowed = ['message', 'edited_message', 'callback_query', 'message_reaction'];
const poll = () => bot.start({ allowed_updates: allowed, timeout: 5, onStart: (me) => report('ready', me) }).then(() => report('stopped'));
poll();

for (;;) {
  const command = await told();
  switch (command.do) {
    case 'stop':
      await bot.stop();
      break;
    case 'webhook': {
      const hook = webhookCallback(bot, 'http', { secretToken: 'hook-secret' });
      const server = createServer(hook);
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      await bot.api.setWebhook(`http://127.0.0.1:${server.address().port}/hook`, { allowed_updates: allowed, secret_token: 'hook-secret' });
      report('webhook', await bot.api.getWebhookInfo());
      break;
    }
  }
}
