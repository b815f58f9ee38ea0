"""The updates that all webhook servers of the benchmark are given: the same mix for each.

Four messages, then a press of a button, over many private chats, in the form in which Telegram
posts them. Numbers have a fixed width, so that every request of a kind is of one size.
"""

from dataclasses import dataclass

# Telegram's numbers are 32 bits wide; ten digits keep every update as long as the others.
FIRST_UPDATE_ID = 1_000_000_000
# Kept free for each load, so that no update of one is a repetition of another's.
IDS_OF_A_LOAD = 2_000_000
_FIRST_CHAT_ID = 5_000_000_000
_EVERY_PRESS = 5

_MESSAGE = (
    '{"update_id":%d,"message":{"message_id":%d,"from":{"id":%d,"is_bot":false,'
    '"first_name":"Ada","last_name":"Byron","username":"ada_of_the_bench","language_code":"en"},'
    '"chat":{"id":%d,"first_name":"Ada","last_name":"Byron","username":"ada_of_the_bench",'
    '"type":"private"},"date":1790000000,"text":"%s"}}'
)
_PRESS = (
    '{"update_id":%d,"callback_query":{"id":"%d","from":{"id":%d,"is_bot":false,'
    '"first_name":"Ada","username":"ada_of_the_bench","language_code":"en"},"message":{'
    '"message_id":%d,"from":{"id":7000000001,"is_bot":true,"first_name":"Ferry",'
    '"username":"ferryman_bench_bot"},"chat":{"id":%d,"first_name":"Ada",'
    '"username":"ada_of_the_bench","type":"private"},"date":1790000000,"text":"Choose",'
    '"reply_markup":{"inline_keyboard":[[{"text":"Tea","callback_data":"tea"},'
    '{"text":"Coffee","callback_data":"coffee"}]]}},"chat_instance":"-4611686018427387904",'
    '"data":"tea"}}'
)
_TEXT = "When does the next ferry leave for the island?"


@dataclass(frozen=True, slots=True)
class Mix:
    """Which updates a load consists of.

    Every `seldom_every`-th one is a message of its own text, `seldom_text`; 0 for none.
    """

    first_update_id: int = FIRST_UPDATE_ID
    chats: int = 500
    seldom_text: str = ""
    seldom_every: int = 0

    def body(self, number: int) -> bytes:
        """The body of update `number`, counted from 0."""
        update_id = self.first_update_id + number
        chat_id = _FIRST_CHAT_ID + number % self.chats
        message_id = 1_000_000 + number
        if self.seldom_every and number % self.seldom_every == self.seldom_every // 2:
            text = _MESSAGE % (update_id, message_id, chat_id, chat_id, self.seldom_text)
        elif number % _EVERY_PRESS == _EVERY_PRESS - 1:
            text = _PRESS % (update_id, update_id, chat_id, message_id, chat_id)
        else:
            text = _MESSAGE % (update_id, message_id, chat_id, chat_id, _TEXT)
        return text.encode("ascii")


def first_update_id(load: int) -> int:
    """Where the ids of one load begin; each load of a run has a number of its own."""
    return FIRST_UPDATE_ID + load * IDS_OF_A_LOAD
