"""The methods of the Bot API that may be left as rows, and what must be known of each before.

Pure data, up to Bot API 10.3 (24 August 2026), which has the same 185 methods as 10.2. A program
may leave a method with its facts in `METHODS`, and every other one is refused to it by name with
the reason; handlers may leave those of `HANDLERS_ONLY` too (bot/turns/classes.py). Whether a
second time changes nothing follows from the documentation and from the source of Telegram's own
server; where neither tells, the method counts as not idempotent.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class CallKind(StrEnum):
    """What a call does: it decides its gates and what its flood holds back.

    send    puts messages into a chat
    edit    changes what a message says
    delete  takes messages away
    answer  answers a query that waits for a moment, and no chat
    action  shows for seconds that something is coming
    mark    changes how messages stand in a chat: pins, reactions, what was read
    manage  sets what a chat, its members, the bot or a sticker set are to be
    """

    SEND = "send"
    EDIT = "edit"
    DELETE = "delete"
    ANSWER = "answer"
    ACTION = "action"
    MARK = "mark"
    MANAGE = "manage"


class Returns(StrEnum):
    """What Telegram answers to a call that it has carried out.

    message      the Message that was made
    message_id   the id of the message that was made
    messages     the Messages that were made
    message_ids  the ids of the messages that were made
    edited       the Message as it reads now, or true for one sent by way of an inline query
    true         nothing but that
    other        something else: a link, a topic, a poll
    """

    MESSAGE = "message"
    MESSAGE_ID = "message_id"
    MESSAGES = "messages"
    MESSAGE_IDS = "message_ids"
    EDITED = "edited"
    TRUE = "true"
    OTHER = "other"


_NAMES_ITS_MESSAGE: Final = frozenset({Returns.MESSAGE, Returns.MESSAGE_ID})
_NAMES_ITS_MESSAGES: Final = frozenset({Returns.MESSAGES, Returns.MESSAGE_IDS})


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """What must be known of a Bot API method before it may be deferred.

    `idempotent`: carrying it out twice changes nothing more, so that an uncertain outcome may go
    again by itself. `needs`: the parameters without which Telegram refuses it. `items`: the
    parameter that lists several messages to make. `query`: the parameter that names the query it
    answers. `window_ms`: how long after its cause it is worth anything, where Telegram waits for
    it or shows it only so long. `may_be_paid`: it takes `allow_paid_broadcast`.
    """

    kind: CallKind
    idempotent: bool
    returns: Returns
    needs: tuple[str, ...] = ()
    items: str | None = None
    query: str | None = None
    window_ms: int | None = None
    may_be_paid: bool = False

    @property
    def returns_message(self) -> bool:
        """Whether the answer names the one message made, so that its id has a placeholder."""
        return self.returns in _NAMES_ITS_MESSAGE


# A method, its kind, whether an uncertain one may go again, what it returns, what it needs.
_TABLE: Final = """
# Puts something into a chat; a second time it is there twice. A new topic is announced there.
sendMessage send once message chat_id text
sendRichMessage send once message chat_id rich_message
sendPhoto send once message chat_id photo
sendLivePhoto send once message chat_id live_photo photo
sendAudio send once message chat_id audio
sendDocument send once message chat_id document
sendVideo send once message chat_id video
sendAnimation send once message chat_id animation
sendVoice send once message chat_id voice
sendVideoNote send once message chat_id video_note
sendPaidMedia send once message chat_id star_count media
sendMediaGroup send once messages chat_id media
sendSticker send once message chat_id sticker
sendLocation send once message chat_id latitude longitude
sendVenue send once message chat_id latitude longitude title address
sendContact send once message chat_id phone_number first_name
sendPoll send once message chat_id question options
sendDice send once message chat_id
sendInvoice send once message chat_id title description payload currency prices
sendGame send once message chat_id game_short_name
sendChecklist send once message business_connection_id chat_id checklist
forwardMessage send once message chat_id from_chat_id message_id
forwardMessages send once message_ids chat_id from_chat_id message_ids
copyMessage send once message_id chat_id from_chat_id message_id
copyMessages send once message_ids chat_id from_chat_id message_ids
createForumTopic send once other chat_id name
# Changes what a message says: the second time it is "not modified".
editMessageText edit again edited
editMessageCaption edit again edited
editMessageMedia edit again edited media
editMessageReplyMarkup edit again edited
editMessageChecklist edit again edited business_connection_id chat_id message_id checklist
editMessageLiveLocation edit again edited latitude longitude
stopMessageLiveLocation edit again edited
stopPoll edit again other chat_id message_id
setGameScore edit again edited user_id score
editEphemeralMessageText edit again true chat_id receiver_user_id ephemeral_message_id
editEphemeralMessageMedia edit again true chat_id receiver_user_id ephemeral_message_id media
editEphemeralMessageCaption edit again true chat_id receiver_user_id ephemeral_message_id
editEphemeralMessageReplyMarkup edit again true chat_id receiver_user_id ephemeral_message_id
# Takes messages away: the second time they are "not found".
deleteMessage delete again true chat_id message_id
deleteMessages delete again true chat_id message_ids
deleteEphemeralMessage delete again true chat_id receiver_user_id ephemeral_message_id
# Answers a query that waits for a moment: the second time it is "too old".
answerCallbackQuery answer again true callback_query_id
answerInlineQuery answer again true inline_query_id results
answerShippingQuery answer again true shipping_query_id ok
answerPreCheckoutQuery answer again true pre_checkout_query_id ok
answerWebAppQuery answer again other web_app_query_id result
answerGuestQuery answer again other guest_query_id result
answerChatJoinRequestQuery answer again true chat_join_request_query_id result
sendChatJoinRequestWebApp answer again true chat_join_request_query_id web_app_url
# Shows for seconds that something is coming; a draft goes by its own id.
sendChatAction action again true chat_id action
sendMessageDraft action again true chat_id draft_id
sendRichMessageDraft action again true chat_id draft_id rich_message
# Changes how messages stand in their chat, and shares its budget like an edit.
setMessageReaction mark again true chat_id message_id
deleteMessageReaction mark again true chat_id message_id
deleteAllMessageReactions mark again true chat_id
pinChatMessage mark again true chat_id message_id
unpinAllChatMessages mark again true chat_id
unpinAllForumTopicMessages mark again true chat_id message_thread_id
unpinAllGeneralForumTopicMessages mark again true chat_id
approveSuggestedPost mark again true chat_id message_id
declineSuggestedPost mark again true chat_id message_id
readBusinessMessage mark again true business_connection_id chat_id message_id
# Without a message_id it unpins the newest pin, and the second time the one below.
unpinChatMessage mark once true chat_id
# Sets what a chat, its members, the bot or a sticker set are to be; a second time sets the same.
banChatMember manage again true chat_id user_id
restrictChatMember manage again true chat_id user_id permissions
promoteChatMember manage again true chat_id user_id
setChatAdministratorCustomTitle manage again true chat_id user_id custom_title
setChatMemberTag manage again true chat_id user_id
banChatSenderChat manage again true chat_id sender_chat_id
unbanChatSenderChat manage again true chat_id sender_chat_id
setChatPermissions manage again true chat_id permissions
setChatTitle manage again true chat_id title
setChatDescription manage again true chat_id
deleteChatPhoto manage again true chat_id
setChatStickerSet manage again true chat_id sticker_set_name
deleteChatStickerSet manage again true chat_id
setChatMenuButton manage again true
leaveChat manage again true chat_id
verifyUser manage again true user_id
verifyChat manage again true chat_id
removeUserVerification manage again true user_id
removeChatVerification manage again true chat_id
editChatInviteLink manage again other chat_id invite_link
editChatSubscriptionInviteLink manage again other chat_id invite_link
revokeChatInviteLink manage again other chat_id invite_link
editForumTopic manage again true chat_id message_thread_id
closeForumTopic manage again true chat_id message_thread_id
reopenForumTopic manage again true chat_id message_thread_id
deleteForumTopic manage again true chat_id message_thread_id
editGeneralForumTopic manage again true chat_id name
closeGeneralForumTopic manage again true chat_id
reopenGeneralForumTopic manage again true chat_id
hideGeneralForumTopic manage again true chat_id
unhideGeneralForumTopic manage again true chat_id
deleteBusinessMessages manage again true business_connection_id message_ids
setBusinessAccountName manage again true business_connection_id first_name
setBusinessAccountUsername manage again true business_connection_id
setBusinessAccountBio manage again true business_connection_id
removeBusinessAccountProfilePhoto manage again true business_connection_id
setBusinessAccountGiftSettings manage again true business_connection_id show_gift_button \
    accepted_gift_types
deleteStory manage again true business_connection_id story_id
setUserEmojiStatus manage again true user_id
setMyCommands manage again true commands
deleteMyCommands manage again true
setMyName manage again true
setMyDescription manage again true
setMyShortDescription manage again true
removeMyProfilePhoto manage again true
setMyDefaultAdministratorRights manage again true
setManagedBotAccessSettings manage again true user_id is_access_restricted
setPassportDataErrors manage again true user_id errors
setStickerPositionInSet manage again true sticker position
deleteStickerFromSet manage again true sticker
setStickerEmojiList manage again true sticker emoji_list
setStickerKeywords manage again true sticker
setStickerMaskPosition manage again true sticker
setStickerSetTitle manage again true name title
setStickerSetThumbnail manage again true name user_id format
setCustomEmojiStickerSetThumbnail manage again true name
deleteStickerSet manage again true name
# Makes something new each time, or may undo what somebody did in between.
unbanChatMember manage once true chat_id user_id
approveChatJoinRequest manage once true chat_id user_id
declineChatJoinRequest manage once true chat_id user_id
exportChatInviteLink manage once other chat_id
createChatInviteLink manage once other chat_id
createChatSubscriptionInviteLink manage once other chat_id subscription_period subscription_price
createInvoiceLink manage once other title description payload currency prices
savePreparedInlineMessage manage once other user_id result
savePreparedKeyboardButton manage once other user_id button
createNewStickerSet manage once true user_id name title stickers
addStickerToSet manage once true user_id name sticker
replaceStickerInSet manage once true user_id name old_sticker sticker
repostStory manage once other business_connection_id from_chat_id from_story_id active_period
"""

# What only a handler may leave: it has the file in its hand, or waits for the answer.
_HANDLERS_TABLE: Final = """
# A second time it is posted, or announced, once more.
setChatPhoto manage once true chat_id photo
setMyProfilePhoto manage once true photo
setBusinessAccountProfilePhoto manage once true business_connection_id photo
postStory manage once other business_connection_id content active_period
editStory manage again other business_connection_id story_id content
uploadStickerFile manage again other user_id sticker sticker_format
# Moves money or gifts, or takes the bot away from its server.
sendGift manage once true gift_id
giftPremiumSubscription manage once true user_id month_count star_count
convertGiftToStars manage once true business_connection_id owned_gift_id
upgradeGift manage once true business_connection_id owned_gift_id
transferGift manage once true business_connection_id owned_gift_id new_owner_chat_id
transferBusinessAccountStars manage once true business_connection_id star_count
refundStarPayment manage once true user_id telegram_payment_charge_id
editUserStarSubscription manage once true user_id telegram_payment_charge_id is_canceled
logOut manage once true
close manage once true
"""

# Telegram makes one message of each item; deleteMessages makes none.
_ITEMS: Final = {
    "sendMediaGroup": "media",
    "forwardMessages": "message_ids",
    "copyMessages": "message_ids",
}

# Puts something into a chat, and does not take allow_paid_broadcast.
_NEVER_PAID: Final = frozenset(
    {
        *("forwardMessage", "forwardMessages", "copyMessages"),
        *("sendChecklist", "createForumTopic"),
    }
)

# Documented are pre-checkout and join request (10 s), a chat action (5 s) and a draft (30 s). That
# a pressed button's client gives up after 15 s, and an inline query's after 10, users measured.
# Of a shipping query nothing is said: it is taken to wait as the pre-checkout query after it.
_ANSWER_WINDOW_MS: Final = 15_000
_WINDOWS_MS: Final = {
    "answerInlineQuery": 10_000,
    "answerShippingQuery": 10_000,
    "answerPreCheckoutQuery": 10_000,
    "answerChatJoinRequestQuery": 10_000,
    "sendChatJoinRequestWebApp": 10_000,
    "sendChatAction": 5_000,
    "sendMessageDraft": 30_000,
    "sendRichMessageDraft": 30_000,
}


def _facts(table: str) -> Iterator[tuple[str, MethodFacts]]:
    for line in table.splitlines():
        if not line or line.startswith("#"):
            continue
        method, kind, repeat, returns, *needs = line.split()
        is_answer = kind == CallKind.ANSWER
        yield (
            method,
            MethodFacts(
                kind=CallKind(kind),
                idempotent=repeat == "again",
                returns=Returns(returns),
                needs=tuple(needs),
                items=_ITEMS.get(method),
                query=needs[0] if is_answer else None,
                window_ms=_WINDOWS_MS.get(method, _ANSWER_WINDOW_MS if is_answer else None),
                may_be_paid=kind == CallKind.SEND and method not in _NEVER_PAID,
            ),
        )


METHODS: Final[Mapping[str, MethodFacts]] = MappingProxyType(dict(_facts(_TABLE)))
"""What programs may leave too. Every other method is in `NOT_DEFERRABLE`, with the reason."""

HANDLERS_ONLY: Final[Mapping[str, MethodFacts]] = MappingProxyType(dict(_facts(_HANDLERS_TABLE)))
"""What only handlers may leave."""


def method_facts(method: str) -> MethodFacts | None:
    """What is known of a method that a row may hold; None of one newer than this table."""
    return METHODS.get(method) or HANDLERS_ONLY.get(method)


_SAYING: Final = frozenset({CallKind.SEND, CallKind.EDIT, CallKind.ACTION})


def says_something(method: str) -> bool:
    """Tell whether a call says something to somebody, which can lose its reason by what happens.

    A deletion, a ban or a pin keeps its own, and a query has a deadline instead. A method that is
    not known here says something.
    """
    facts = method_facts(method)
    return facts is None or facts.kind in _SAYING


def items_of(method: str, params: Mapping[str, str]) -> int:
    """How many messages a call makes: the size of an album, 1 for all else.

    `params` are the form fields as they are stored; what can't be read counts as one.
    """
    facts = METHODS.get(method)
    listed = "" if facts is None or facts.items is None else params.get(facts.items, "")
    try:
        items = json.loads(listed)
    except (ValueError, RecursionError):
        return 1
    return max(1, len(items)) if isinstance(items, list) else 1


def message_count(method: str, params: Mapping[str, str]) -> int:
    """How many messages a call makes whose ids its answer names: each has a placeholder."""
    facts = METHODS.get(method)
    if facts is None:
        return 0
    if facts.returns_message:
        return 1
    return items_of(method, params) if facts.returns in _NAMES_ITS_MESSAGES else 0


_REFUSED: Final = {
    "it only asks, and a row has nobody who hears the answer": """
        getWebhookInfo getMe getUserProfilePhotos getUserProfileAudios getFile getChat
        getChatAdministrators getChatMemberCount getChatMember getUserPersonalChatMessages
        getForumTopicIconStickers getUserChatBoosts getBusinessConnection
        getManagedBotAccessSettings getMyCommands getMyName getMyDescription getMyShortDescription
        getChatMenuButton getMyDefaultAdministratorRights getAvailableGifts
        getBusinessAccountStarBalance getBusinessAccountGifts getUserGifts getChatGifts
        getStickerSet getCustomEmojiStickers getMyStarBalance getStarTransactions getGameHighScores
    """,
    "it changes how updates reach this bot: `ferryman webhook` and `ferryman run` do that": """
        getUpdates setWebhook deleteWebhook close logOut
    """,
    "it spends or moves money or gifts, and must never be made twice": """
        sendGift giftPremiumSubscription convertGiftToStars upgradeGift transferGift
        transferBusinessAccountStars refundStarPayment editUserStarSubscription
    """,
    "it takes a file that must be uploaded with the call, and a row carries none": """
        setChatPhoto setMyProfilePhoto setBusinessAccountProfilePhoto postStory editStory
        uploadStickerFile
    """,
    "its answer is a bot's token, which no row may hold": """
        getManagedBotToken replaceManagedBotToken
    """,
}

NOT_DEFERRABLE: Final[Mapping[str, str]] = MappingProxyType(
    {method: reason for reason, methods in _REFUSED.items() for method in methods.split()}
)
"""The other methods of the Bot API, each with the reason why no program may leave it."""
