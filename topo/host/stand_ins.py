"""Stand-ins for what tells whose a host is: names, users, serials, GUIDs, MACs, IPs.

One value has one stand-in, however it is spelled, so that what matched before matches after. They
are numbered in the order in which the values are met: the same texts get the same stand-ins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from topo.catalogue.parts import catalogue

_SHORTEST_NAME: Final = 3  # a shorter word is everywhere, and replaced behind a label alone
_SHORTEST_SERIAL: Final = 6  # where no label says that it is one
# Names of hosts and users that tell nothing, and that tools' own words are made of.
_ORDINARY: Final = frozenset(
    (
        *("localhost", "localdomain", "host", "node", "server", "system", "linux", "memory"),
        *("gpu", "cpu", "nic", "nvidia", "mellanox", "intel", "amd", "none", "unknown", "default"),
        *("dgx", "hgx", "mlx4", "mlx5", "local", "slot", "pcie", "nvme"),
        *("root", "user", "admin", "ubuntu", "debian", "centos", "rocky", "fedora"),
    )
)
_LONGEST_LINE: Final = 4096  # characters; no tool's text for people has longer ones
# What is told by its form, in this order. Each is replaced once: a stand-in is never met again.
_FORMS: Final = re.compile(
    r"""
    (?P<nqn> \b (?:nqn|iqn)\. [^\s,;"']+ )
    | (?P<login> (?<![\w.+-]) [a-z_][\w.+-]* @ (?!\d) [\w.-]* )  # who built it, and where
    | (?P<home> (?: (?<=/home/) | (?<=/users/) ) [^/\s:"',]+ )
    | (?P<dashed> (?<=\bip-) \d{1,3} (?:-\d{1,3}){3} )  # ip-10-0-0-5.ec2.internal
    | (?P<cloud> \b (?:i|eni|vol) -? (?=0) ) (?P<resource> [0-9a-f]{17} ) \b
    | (?P<label> \b (?:mac|guid|ww[pn]?n|wwnn|uid) \b [^\w\n]{1,4} )
        (?P<labelled> [0-9a-f]{12,16} ) (?![0-9a-z])
    | (?P<dotted> (?<![\w.]) [0-9a-f]{4} (?:\.[0-9a-f]{4}){2} (?![\w.]) )  # a MAC, by switches
    | (?P<hash> (?<![0-9a-z]) [0-9a-f]{32,64} (?![0-9a-z]) )
    | (?P<uuid> [0-9a-f]{8} (?:-[0-9a-f]{4}){3} -[0-9a-f]{12} )
    | (?P<bytes> (?<![\w:-]) [0-9a-f]{2} (?P<mark>[:-])  # a MAC or GUID: 00:15:.., 00-15-..
        (?:[0-9a-f]{2} (?P=mark)){4,18} [0-9a-f]{2} (?![\w-] | :[0-9a-f]) )
    # In names that the system makes: enx001122334455, ibx.., eui.0025..
    | (?P<prefix> \b (?:en|wl|ww|ib|roce|iw|nn-0|pn-0|eui\.|nguid\.|wwn\.?|naa\.) x? )
        (?P<address> [0-9a-f]{12,32} ) (?![0-9a-f])
    | (?P<guid> (?<![\w:]) (?: (?:[0-9a-f]{4}:){3} [0-9a-f]{4} | 0x[0-9a-f]{16} ) (?![\w:]) )
    | (?P<ipv6> (?<![\w:.]) (?=[0-9a-f:]*:[0-9a-f:]*:) [0-9a-f:]{2,39}
        (?: (?<=:) \d{1,3} (?:\.\d{1,3}){3} )? (?![\w:]) )
    | (?P<ipv4> (?<![\w.]) \d{1,3} (?:\.\d{1,3}){3} (?![\w.]*\d) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LABELLED: Final = re.compile(
    r"(?im)^(.*?(?:\bserial(?:[ _-]?(?:number|no\.?|num))?|\bS/?N|\[(?:SN|[VY].)\][^:\n]*"
    r"|\[\w\w\] Unknown"
    r"|\basset[ _-]?tag|\bservice[ _-]?tag|\bhost[ _-]?name|\bnode description|\bnodedesc"
    r"|\bsys(?:tem)?[ _-]?name)\"?[ \t]*[:=]+[ \t]*\"?)([^\s\"][^\"\n]*?)(\"?,?[ \t\r]*)$"
)
_QUOTED: Final = re.compile(
    r"(?i)(\"[\w -]{0,40}(?:serial|asset[ _-]?tag|host[ _-]?name)[\w -]{0,40}\"\s*:\s*\")"
    r"([^\"\n]+)(\")"
)
_EMPTY_VALUE: Final = re.compile(
    r"(?i)(not )?(specified|available|supported|present|provided|applicable)|n/?a|none|unknown|"
    r"to be filled by o\.?e\.?m\.?|0+|<out of spec>|no asset tag"
)
_SERIALS: Final = re.compile(r"(?m)^.*\b(SN +)Model\b.*$")  # the head of `nvme list`
_MAC_BYTES, _GUID_BYTES = 6, 8
_HOST_BITS: Final = 64
_FIRST_OCTET: Final = 9  # so that they begin with 10, and are nobody's


class StandIns:
    """The stand-ins of one host's values.

    Parameters
    ----------
    names
        Names of the host and its users: words by themselves.
    serials
        Serial numbers and the like, which the texts may have without a label.
    """

    def __init__(self, names: Iterable[str] = (), serials: Iterable[str] = ()) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        known = [(name, "name") for name in names if name and _is_telling(name)]
        known += [
            (serial.strip(), "serial")
            for serial in serials
            if len(serial.strip()) >= _SHORTEST_SERIAL and _is_serial(serial)
        ]
        self._sort_of = {text.lower(): sort for text, sort in known}
        for text, sort in sorted(self._sort_of.items()):
            self._of(sort, text, lambda number, sort=sort: f"{sort}{number}")  # type: ignore[misc]
        longest_first = sorted(self._sort_of, key=lambda text: (-len(text), text))
        long = [text for text in longest_first if len(text) >= _SHORTEST_NAME]
        words = "|".join(re.escape(text) for text in long) or r"(?!)"
        self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE)

    def replaced(self, text: str) -> str:
        """Return a text with a stand-in for each value that tells whose it is."""
        lines = text.split("\n")
        text = "\n".join(
            line if len(line) <= _LONGEST_LINE else f"({len(line)} characters)" for line in lines
        )
        text = _LABELLED.sub(self._labelled, self._with_columns(text))
        text = _QUOTED.sub(self._labelled, text)
        text = self._known.sub(lambda match: self._word(match[0]), text)
        return _FORMS.sub(self._formed, text)

    def route_replaced(self, table: str) -> str:
        """Return `/proc/net/route`, whose addresses are hexadecimal and byte by byte reversed."""
        return re.sub(r"(?<=\t)[0-9A-Fa-f]{8}(?=\t)", self._reversed_ipv4, table)

    # --- one value --------------------------------------------------------------------------------

    def _of(self, sort: str, value: str, make: Callable[[int], str]) -> str:
        """Return the stand-in of a value, made of a number when it is met first."""
        if (sort, value) not in self._given:
            number = self._counts[sort] = self._counts.get(sort, 0) + 1
            self._given[sort, value] = make(number)
        return self._given[sort, value]

    def _word(self, text: str) -> str:
        sort = self._sort_of[text.lower()]
        return self._of(sort, text.lower(), lambda number: f"{sort}{number}")

    def _labelled(self, match: re.Match[str]) -> str:
        value = match[2]
        is_telling = _is_serial(value) or value.strip().lower() in self._sort_of
        return f"{match[1]}{self._serial(value)}{match[3]}" if is_telling else match[0]

    def _with_columns(self, text: str) -> str:
        """Return a table with stand-ins in its column `SN`."""
        head = _SERIALS.search(text)
        if head is None:
            return text
        start, end = head.start(1) - head.start(), head.end(1) - head.start()
        table, rows = text[: head.end()], text[head.end() :].split("\n")
        for at, row in enumerate(rows):
            cell = row[start:end]
            if _is_serial(cell) and set(cell) - {*"-= "}:
                rows[at] = row[:start] + self._serial(cell).ljust(len(cell)) + row[end:]
        return table + "\n".join(rows)

    def _serial(self, text: str) -> str:
        value = text.strip().lower()
        if value in self._sort_of:
            return self._word(value)
        return self._of("serial", value, lambda number: f"serial{number}")

    def _formed(self, match: re.Match[str]) -> str:
        """Return what takes the place of a value that is told by its form, the last group's."""
        form, text = match.lastgroup or "", match[0]
        if form in _BY_NUMBER:
            return self._of(form, text.lower(), _BY_NUMBER[form])
        if form == "bytes":
            return self._by_bytes(text, match["mark"])
        if form in ("address", "labelled", "resource"):  # behind what stays
            before = text.removesuffix(match[form])
            if form != "resource":
                return before + self._plain(match[form])
            return before + self._of("cloud", match[form].lower(), lambda at: f"{at:017x}")
        forms = {
            "dashed": self._dashed,
            "dotted": self._dotted,
            "hash": self._hash,
            "guid": self._guid,
            "ipv6": self._ipv6,
            "ipv4": self._ipv4,
        }
        return forms[form](text)

    def _dashed(self, text: str) -> str:
        return self._ipv4(text.replace("-", ".")).replace(".", "-")

    def _dotted(self, text: str) -> str:
        digits = text.replace(".", "")
        if digits.isdecimal():  # a version
            return text
        plain = self._plain(digits)
        return ".".join(plain[at : at + 4] for at in (0, 4, 8))

    def _hash(self, text: str) -> str:
        if len({*text}) == 1:  # nobody's
            return text
        return self._of("hash", text.lower(), lambda at: f"{at:x}").rjust(len(text), "0")

    def _plain(self, digits: str) -> str:
        """Return a hardware address in digits alone."""
        if len(digits) == 2 * _MAC_BYTES:
            return self._of("mac", digits.lower(), _mac)
        return "".join(self._interface(digits[at : at + 16]) for at in range(0, len(digits), 16))[
            : len(digits)
        ]

    def _by_bytes(self, text: str, mark: str) -> str:
        digits = text.replace(mark, "")
        count = len(digits) // 2
        if count == _MAC_BYTES:
            plain = self._of("mac", digits.lower(), _mac)
        elif count > _GUID_BYTES:  # an InfiniBand hardware address ends in the port's GUID
            plain = "0" * (len(digits) - 16) + self._interface(digits[-16:])
        elif count == _GUID_BYTES:
            plain = self._interface(digits)
        else:
            plain = "0" * len(digits)
        return mark.join(plain[at : at + 2] for at in range(0, len(plain), 2))

    def _guid(self, text: str) -> str:
        digits = text.lower().removeprefix("0x").replace(":", "")
        plain = self._interface(digits)
        if ":" not in text:
            return f"0x{plain}"
        return ":".join(plain[at : at + 4] for at in range(0, 16, 4))

    def _interface(self, digits: str) -> str:
        """Return the stand-in of 64 bits: a GUID, or the lower half of an IPv6 address."""
        value = digits.lower().rjust(16, "0")
        if int(value, 16) in (0, 1, (1 << _HOST_BITS) - 1):
            return value
        return self._of("guid", value, lambda number: f"{0x0200_0000_0000_0000 + number:016x}")

    def _ipv6(self, text: str) -> str:
        try:
            address = IPv6Address(text)
        except ValueError:
            return text
        if address.ipv4_mapped is not None:
            low = f"{int(IPv4Address(self._ipv4(str(address.ipv4_mapped)))):08x}"
            if "." in text or "::" in text:
                return f"::ffff:{self._ipv4(str(address.ipv4_mapped))}"
            return f"0000:0000:0000:0000:0000:ffff:{low[:4]}:{low[4:]}"
        if address.is_unspecified or address.is_loopback:
            return text
        high, low_half = f"{int(address):032x}"[:16], f"{int(address):032x}"[16:]
        if not address.is_link_local:
            high = self._of("net", high, lambda number: f"fd00{number:012x}")
        digits = high + self._interface(low_half)
        if "::" in text:
            return str(IPv6Address(int(digits, 16)))
        return ":".join(digits[at : at + 4] for at in range(0, 32, 4))

    def _ipv4(self, text: str) -> str:
        """Return an address of which equal beginnings have equal beginnings."""
        octets = text.split(".")
        if any(int(octet) > 255 for octet in octets):  # noqa: PLR2004  (no address)
            return text
        if octets[0] in ("0", "127", "255"):
            return text
        replaced = []
        for at, octet in enumerate(octets):
            if octet in ("0", "255"):
                replaced.append(octet)
                continue
            before = ".".join(octets[:at])
            first = 0 if at else _FIRST_OCTET
            replaced.append(
                self._of(f"ip {before}", octet, lambda number, first=first: str(first + number))  # type: ignore[misc]
            )
        return ".".join(replaced)

    def _reversed_ipv4(self, match: re.Match[str]) -> str:
        octets = [str(int(match[0][at : at + 2], 16)) for at in (6, 4, 2, 0)]
        if octets[0] in ("0", "255"):  # no destination, or a mask
            return match[0]
        replaced = self._ipv4(".".join(octets)).split(".")
        return "".join(f"{int(octet):02X}" for octet in reversed(replaced))


def _is_telling(name: str) -> bool:
    """Whether a name of a host or user is one to replace."""
    is_ordinary = name.lower() in _ORDINARY or name.lower() in _hardware_words()
    return not is_ordinary and not name.isdecimal()


@cache
def _hardware_words() -> frozenset[str]:
    """Return the words that names of parts are made of: a host called h100 tells nothing."""
    return frozenset(word for part in catalogue().parts for word in part.split("-"))


def _is_serial(text: str) -> bool:
    """Whether a text may be a serial number: not empty, and no word for that."""
    text = text.strip()
    return len(text) >= _SHORTEST_NAME and not _EMPTY_VALUE.fullmatch(text)


def _mac(number: int) -> str:
    return f"02{number:010x}"


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def _nqn(number: int) -> str:
    return f"nqn.2000-01.org.example:target{number}"


_BY_NUMBER: Final[dict[str, Callable[[int], str]]] = {
    "nqn": _nqn,
    "uuid": _uuid,
    "login": lambda number: f"login{number}@",
    "home": lambda number: f"home{number}",
}
