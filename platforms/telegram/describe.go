package telegram

import (
	"context"
	"strconv"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms"
)

// Describe tells what events from a chat carry. The chat with a person has the person's own id.
func (a *Adapter) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	chat, thread, err := a.chatOf(at)
	if err != nil {
		return platforms.Room{}, err
	}
	room := platforms.Room{Address: a.addressOfThread(chat, thread), Type: platforms.DM, User: platforms.UserID(strconv.FormatInt(chat, 10))}
	if chat > 0 {
		return room, nil
	}
	var got *models.ChatFullInfo
	err = a.act(ctx, chat, func(ctx context.Context) (err error) {
		got, err = a.api.GetChat(ctx, &bot.GetChatParams{ChatID: chat})
		return err
	})
	if err != nil {
		return platforms.Room{}, err
	}
	c := models.Chat{ID: chat, Type: got.Type, Title: got.Title}
	room.Type, room.Name, room.User = chatType(c), chatName(c), ""
	return room, nil
}
