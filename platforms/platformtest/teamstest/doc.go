// Package teamstest is a fake Microsoft Teams with the Bot Framework before it: the key server whose tokens a bot
// must check, the token endpoint, the connector's REST interface, as much of SharePoint and Graph as files need,
// and the tenants, people, chats and channels behind them. It knows the protocol and no adapter.
//
// It is checked by Microsoft's own botbuilder library, see package platforms/platformtest/oracle.
package teamstest
