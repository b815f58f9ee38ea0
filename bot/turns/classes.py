"""What becomes of each method of the Bot API when a handler calls it.

Pure data, up to Bot API 10.3, which has the same 185 methods as 10.2. Nothing here may be left to a
guess: a method that is newer than this table is a read if its name says so, and is awaited
otherwise, so that its caller gets Telegram's own answer and nobody makes one up.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

_READ_PREFIX: Final = "get"


class CallClass(StrEnum):
    """Which way a call takes.

    read            only asks: it passes through to Telegram, if the bot is not cooling
    deferred        becomes a row; its answer can be made up
    ephemeral       becomes a row that lives for seconds and is tried once
    awaited         becomes a row whose answer the caller waits for: nobody can make it up
    never_repeated  awaited, tried once, and held for a person when nobody can tell how it went
    refused         can't be made from a handler at all
    """

    READ = "read"
    DEFERRED = "deferred"
    EPHEMERAL = "ephemeral"
    AWAITED = "awaited"
    NEVER_REPEATED = "never_repeated"
    REFUSED = "refused"


_TABLE: Final = {
    CallClass.READ: """
        getWebhookInfo getMe getUserProfilePhotos getUserProfileAudios getFile getChat
        getChatAdministrators getChatMemberCount getChatMember getUserPersonalChatMessages
        getForumTopicIconStickers getUserChatBoosts getBusinessConnection getManagedBotToken
        getManagedBotAccessSettings getMyCommands getMyName getMyDescription
        getMyShortDescription getChatMenuButton getMyDefaultAdministratorRights
        getAvailableGifts getBusinessAccountStarBalance getBusinessAccountGifts getUserGifts
        getChatGifts getStickerSet getCustomEmojiStickers getMyStarBalance getStarTransactions
        getGameHighScores
    """,
    # Telegram answers with what was asked for, with an id, or with true.
    CallClass.DEFERRED: """
        sendMessage forwardMessage forwardMessages copyMessage copyMessages sendPhoto
        sendLivePhoto sendAudio sendDocument sendVideo sendAnimation sendVoice sendVideoNote
        sendPaidMedia sendMediaGroup sendLocation sendVenue sendContact sendChecklist
        setMessageReaction setUserEmojiStatus banChatMember unbanChatMember restrictChatMember
        promoteChatMember setChatAdministratorCustomTitle setChatMemberTag banChatSenderChat
        unbanChatSenderChat setChatPermissions approveChatJoinRequest declineChatJoinRequest
        answerChatJoinRequestQuery sendChatJoinRequestWebApp setChatPhoto deleteChatPhoto
        setChatTitle setChatDescription pinChatMessage unpinChatMessage unpinAllChatMessages
        leaveChat setChatStickerSet deleteChatStickerSet editForumTopic closeForumTopic
        reopenForumTopic deleteForumTopic unpinAllForumTopicMessages editGeneralForumTopic
        closeGeneralForumTopic reopenGeneralForumTopic hideGeneralForumTopic
        unhideGeneralForumTopic unpinAllGeneralForumTopicMessages answerCallbackQuery
        setManagedBotAccessSettings setMyCommands deleteMyCommands setMyName setMyDescription
        setMyShortDescription setMyProfilePhoto removeMyProfilePhoto setChatMenuButton
        setMyDefaultAdministratorRights verifyUser verifyChat removeUserVerification
        removeChatVerification readBusinessMessage deleteBusinessMessages setBusinessAccountName
        setBusinessAccountUsername setBusinessAccountBio setBusinessAccountProfilePhoto
        removeBusinessAccountProfilePhoto setBusinessAccountGiftSettings deleteStory
        editMessageText editMessageCaption editMessageMedia editMessageLiveLocation
        stopMessageLiveLocation editMessageChecklist editMessageReplyMarkup
        editEphemeralMessageText editEphemeralMessageMedia editEphemeralMessageCaption
        editEphemeralMessageReplyMarkup approveSuggestedPost declineSuggestedPost deleteMessage
        deleteMessages deleteEphemeralMessage deleteMessageReaction deleteAllMessageReactions
        sendSticker createNewStickerSet addStickerToSet setStickerPositionInSet
        deleteStickerFromSet replaceStickerInSet setStickerEmojiList setStickerKeywords
        setStickerMaskPosition setStickerSetTitle setStickerSetThumbnail
        setCustomEmojiStickerSetThumbnail deleteStickerSet sendRichMessage answerInlineQuery
        sendInvoice answerShippingQuery answerPreCheckoutQuery setPassportDataErrors sendGame
        setGameScore
    """,
    CallClass.EPHEMERAL: """
        sendMessageDraft sendChatAction sendRichMessageDraft
    """,
    # A link, a topic, a story, a file: or what only Telegram knows, such as how the dice fell.
    CallClass.AWAITED: """
        sendPoll sendDice exportChatInviteLink createChatInviteLink editChatInviteLink
        createChatSubscriptionInviteLink editChatSubscriptionInviteLink revokeChatInviteLink
        createForumTopic answerGuestQuery postStory repostStory editStory answerWebAppQuery
        savePreparedInlineMessage savePreparedKeyboardButton stopPoll uploadStickerFile
        createInvoiceLink
    """,
    # Moves money or gifts, or takes the bot away from this server.
    CallClass.NEVER_REPEATED: """
        logOut close sendGift giftPremiumSubscription transferBusinessAccountStars
        convertGiftToStars upgradeGift transferGift refundStarPayment editUserStarSubscription
    """,
}

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "getUpdates": "updates come by way of the inbox, and asking confirms what it has given",
        "setWebhook": "its secret would lie in a row: `ferryman webhook set` does it",
        "deleteWebhook": "updates would stop coming: `ferryman webhook delete` does it",
        "replaceManagedBotToken": "its answer is a bot's token, which no row may hold",
    }
)
"""Why each refused method is refused, and what to do instead."""


def _classes() -> Iterator[tuple[str, CallClass]]:
    for call_class, methods in _TABLE.items():
        for method in methods.split():
            yield method, call_class
    for method in REASONS:
        yield method, CallClass.REFUSED


CLASSES: Final[Mapping[str, CallClass]] = MappingProxyType(dict(_classes()))
"""Every method of the Bot API as the table knows it, with its class."""

# Telegram takes a method's name in any case (telegram-bot-api, Query.cpp, `to_lower_inplace`).
_NAMES: Final = {method.lower(): method for method in CLASSES}


def name_of(method: str) -> str:
    """The name of a method as the Bot API writes it; one that is not known stays as it is."""
    return _NAMES.get(method.lower(), method)


def class_of(method: str) -> CallClass:
    """The class of a method, known or not, however its name is written."""
    known = CLASSES.get(method) or CLASSES.get(name_of(method))
    if known is not None:
        return known
    return CallClass.READ if method.lower().startswith(_READ_PREFIX) else CallClass.AWAITED


def is_awaited(method: str) -> bool:
    """Whether whoever calls this method waits for Telegram's own answer, whatever is wished."""
    return class_of(method) in {CallClass.AWAITED, CallClass.NEVER_REPEATED}
