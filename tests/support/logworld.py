"""A log on disk to which everything happens that happens to logs, and a model that remembers what was ever written.

The model knows lives: a life is what a log holds from its creation, or its truncation, to the next one. Each piece of
text that is written is unlike any other, so that bytes tell which life they belong to.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from watchd.model import Block, Event, Gap, Relaunch

GRACE_S = 9
"""how long after a rename was noticed late text must be told, in seconds"""
KEPT = 6
"""rotated files that are kept; older ones are deleted"""


@dataclass(slots=True)
class Life:
    """What was written from one beginning of the log to the next.

    looked_at    a poll ended well while it had text and lay in a file
    late_from    its size when it lost the name, or None
    broken_off   after it had lost its name, handles were lost or the time ran out, or it is not the held file but has
                 its text: its late text nobody sees
    orphaned     the one before it was deleted or lost, and nobody has looked since: nothing leads from there to here
    seen_empty   it had no text when it was last seen: nothing proves which copy is one of it
    after_loss   the one before it was truncated without a copy: a copy of this one alone could be anything
    swapped      another file took its place with its text, and nobody could see that since
    excused      it ended while that was so: what was written after the swap nobody could see
    """

    number: int
    text: bytearray = field(default_factory=bytearray)
    looked_at: bool = False
    late_from: int | None = None
    renamed_at: int | None = None
    noticed_at: int | None = None
    broken_off: bool = False
    orphaned: bool = False
    seen_empty: bool = False
    after_loss: bool = False
    swapped: bool = False
    excused: bool = False


class World:
    """One log. `now` counts seconds; files get it as their time of last writing. `inodes`: whoever looks sees them."""

    def __init__(self, folder: Path, *, inodes: bool, now: int = 1_700_000_000) -> None:
        self.inodes = inodes
        self.path = folder / "server.log"
        self.now = now
        self.lives: list[Life] = []
        self.files: dict[Path, Life] = {}
        self._count = 0
        self._late: tuple[int, Life] | None = None
        self._orphan_next = False
        self._first_look = False
        self._away = False
        self._lost_track = False
        self._deleted = (0, 0)

    # What can happen.

    def create(self) -> None:
        """A server begins with an empty log, unless there is one."""
        if self.path not in self.files:
            self._new_life()
            self.path.write_bytes(b"")
            self._touch(self.path)

    def write(self, size: int, *, newline: bool = True) -> None:
        """The server appends a piece of text."""
        self.create()
        self._append(self.path, self._text(size, newline=newline))

    def relaunch(self, size: int) -> None:
        """A server is launched with `> server.log`, and writes at once."""
        self.create()
        self._end(self.files[self.path])
        self._new_life()
        self.files[self.path].after_loss = True
        self.path.write_bytes(b"")
        self._touch(self.path)
        if size:
            self._append(self.path, self._text(size))

    def rotate(self, *, create: bool) -> None:
        """logrotate's way: the log is renamed; a new one is there at once, or with the next line."""
        if self.path not in self.files:
            return
        self._shift()
        life = self.files.pop(self.path)
        first = Path(f"{self.path}.1")
        self.path.rename(first)
        self.files[first] = life
        life.late_from, life.renamed_at = len(life.text), self.now
        life.broken_off = life.swapped and not self.inodes
        # Without inodes an empty file has nothing by which it is known again, and so nothing tells what came after it.
        self._lost_track = self._lost_track or not (life.text or self.inodes)
        self._hold_late(first, life)
        if create:
            self.create()

    def copytruncate(self, *, append: bool) -> None:
        """logrotate's other way: a copy is made and the log truncated; a writer without O_APPEND leaves a hole."""
        if self.path not in self.files:
            return
        self._shift()
        life = self.files[self.path]
        self._leave_track(life)
        first = Path(f"{self.path}.1")
        shutil.copyfile(self.path, first)
        self._touch(first)
        self.files[first] = life
        self._new_life()
        size = self.path.stat().st_size
        self.path.write_bytes(b"")
        self._touch(self.path)
        if not append:
            text = self._text(40)
            with self.path.open("r+b") as file:
                file.seek(size)
                file.write(text)
            self.files[self.path].text += b"\0" * size + text
            self._touch(self.path)

    def late(self, size: int) -> None:
        """Somebody still writes to the file that lost its name."""
        if self._late is None:
            return
        descriptor, life = self._late
        if life.noticed_at is not None and self.now - life.noticed_at >= GRACE_S:
            life.broken_off = True
        text = self._text(size)
        os.write(descriptor, text)
        life.text += text
        os.utime(descriptor, (self.now, self.now))

    def delete(self) -> None:
        """The log is deleted."""
        if self.path in self.files:
            self._end(self.files[self.path])
            self._deleted = (self.files[self.path].number, self.now)
            self.path.unlink()
            del self.files[self.path]
            self._orphan_next = True

    def replace(self) -> None:
        """An editor's way: a copy with the same text takes the log's place."""
        if self.path in self.files:
            other = self.path.with_name("elsewhere")
            shutil.copyfile(self.path, other)
            os.utime(other, (self.now, self.now))
            other.replace(self.path)
            self.files[self.path].swapped = True
            self._deleted = (self.files[self.path].number, self.now)
            self._leave_track(self.files[self.path])

    def forget(self) -> None:
        """No late writer is left."""
        if self._late is not None:
            os.close(self._late[0])
        self._late = None

    # How it happens.

    def _text(self, size: int, *, newline: bool = True) -> bytes:
        self._count += 1
        # The digits that change most come first: a piece of a piece is unlike others as well.
        return f"{self._count:07d}"[::-1].encode().ljust(size, b"x") + (b"\n" if newline else b"")

    def _append(self, path: Path, text: bytes) -> None:
        with path.open("ab") as file:
            file.write(text)
        self.files[path].text += text
        self._touch(path)

    def _touch(self, path: Path) -> None:
        os.utime(path, (self.now, self.now))

    def _leave_track(self, life: Life) -> None:
        """The open file is no longer this life's: only its text could prove what it came after."""
        nothing_seen = life.seen_empty or life.after_loss or not life.text
        life.orphaned = life.orphaned or (nothing_seen and not life.looked_at)

    def _end(self, life: Life) -> None:
        life.excused = life.excused or life.swapped
        self._orphan_next = self._orphan_next or self._away or life.swapped
        # It may have been open already and waited for its turn.
        life.orphaned = life.orphaned or self._away

    def _new_life(self) -> None:
        before = self.lives[-1] if self.lives else None
        unseen = before is not None and not before.looked_at and (before.orphaned or before.seen_empty)
        life = Life(number=len(self.lives), orphaned=self._orphan_next or self._lost_track or unseen)
        self._orphan_next = False
        self.lives.append(life)
        self.files[self.path] = life

    def _shift(self) -> None:
        last = Path(f"{self.path}.{KEPT}")
        if last in self.files:
            last.unlink()
            del self.files[last]
        for number in range(KEPT - 1, 0, -1):
            old, new = Path(f"{self.path}.{number}"), Path(f"{self.path}.{number + 1}")
            if old in self.files:
                old.rename(new)
                self.files[new] = self.files.pop(old)

    def _hold_late(self, path: Path, life: Life) -> None:
        self.forget()
        self._late = (os.open(path, os.O_WRONLY | os.O_APPEND), life)

    # What a look must see.

    def look(self) -> list[tuple[Life, bool]]:
        """A poll begins: these lives it finds, and whether with text."""
        return [(life, bool(life.text)) for life in self.files.values()]

    def looked(self, found: list[tuple[Life, bool]]) -> None:
        """The poll ended well: what it found must be told, now or later, but for what came before the first."""
        if not self._first_look:
            self._first_look = True
            for life in self.lives[:-1]:
                life.orphaned = True
        self._away = False
        left = {life.number for life in self.files.values()}
        for life in self.lives:
            if life.renamed_at is not None and life.noticed_at is None:
                life.noticed_at = self.now
        for life in self.files.values():
            life.seen_empty = True  # as far as one knows, if it began during the poll
            self._lost_track = self._lost_track and not (self.path in self.files and self.files[self.path].text)
        for life, with_text in found:
            if life.number not in left:
                continue  # it ended during the poll, before or after it could be read
            if life.orphaned and self.files.get(self.path) is not life:
                continue  # nobody knows what it is
            life.looked_at = life.looked_at or with_text
            life.swapped = life.swapped and not self.inodes
            life.seen_empty = not with_text

    def broke_off(self) -> None:
        """The follower lost its handles: of files that lost their name nobody sees late text any more.

        And of a file that was empty when it was last seen, nothing can prove which one it was.
        """
        self._away = True
        self._lost_track = self._lost_track or any(life.seen_empty and not life.looked_at for life in self.lives)
        left = {life.number for life in self.files.values()}
        if self.now - self._deleted[1] < 30:
            # It may still have been read to its end, and nothing leads from a deleted file to the next one.
            for life in self.lives[self._deleted[0] + 1 :]:
                life.orphaned = True
        for life in self.lives:
            # Of a deleted file nothing is left but an open handle.
            life.orphaned = life.orphaned or not life.looked_at or life.number not in left
            life.broken_off = life.broken_off or life.renamed_at is not None


class Witness:
    """Takes a follower's events down, and holds them against the world."""

    def __init__(self) -> None:
        self.blocks: dict[int, list[Block]] = {}
        self.gaps: dict[int, list[Gap]] = {}
        self.next: tuple[int, int] | None = None
        self.relaunches: list[int] = []
        self._unread_generations = 0

    def take(self, events: tuple[Event, ...]) -> None:
        """Events of one poll, in order."""
        for event in events:
            if isinstance(event, Block):
                assert 0 < len(event.data) <= 256 * 1024
                if self.next and self.next[0] == event.generation and event.offset != self.next[1]:
                    assert any(g.start <= self.next[1] and g.end == event.offset for g in self._of(event.generation)), (
                        f"{event.generation}: {self.next[1]} is followed by {event.offset}"
                    )
                self.blocks.setdefault(event.generation, []).append(event)
                self.next = (event.generation, event.offset + len(event.data))
            elif isinstance(event, Gap):
                self.gaps.setdefault(event.generation, []).append(event)
            elif isinstance(event, Relaunch):
                assert event.generation not in self.blocks, "a generation was used again"
                self.relaunches.append(event.generation)
                self.next = (event.generation, 0)

    def rewound(self, generation: int, offset: int) -> None:
        """What was handed on behind this place will be handed on again."""
        kept = []
        for block in self.blocks.get(generation, []):
            keep = offset - block.offset
            if keep >= len(block.data):
                kept.append(block)
            elif keep > 0:
                kept.append(Block(generation=generation, offset=block.offset, data=block.data[:keep], at=block.at))
        self.blocks[generation] = kept
        self.next = (generation, offset)

    def _of(self, generation: int) -> list[Gap]:
        return self.gaps.get(generation, [])

    def check(self, world: World) -> None:
        """Every byte once, at its place, or in a gap."""
        told: dict[int, set[int]] = {}
        generations: dict[int, list[int]] = {}
        for generation, blocks in self.blocks.items():
            life = self._life(world, generation, blocks)
            if life is None:
                continue
            generations.setdefault(life.number, []).append(generation)
            seen = told.setdefault(life.number, set())
            for block in blocks:
                places = range(block.offset, block.offset + len(block.data))
                assert seen.isdisjoint(places), f"told twice: life {life.number}, {block.offset}"
                seen.update(places)
        # A file that was truncated before its turn came is a generation with gaps and nothing else.
        self._unread_generations = sum(
            generation not in self.blocks and gaps[0].start == 0 and gaps[-1].end is None
            for generation, gaps in self.gaps.items()
        )
        for life in world.lives:
            self._check_loss(life, told.get(life.number, set()), generations.get(life.number, []))

    def _life(self, world: World, generation: int, blocks: list[Block]) -> Life | None:
        fitting = [
            life for life in world.lives if all(life.text[b.offset : b.offset + len(b.data)] == b.data for b in blocks)
        ]
        if not blocks:
            return None
        assert len(fitting) == 1, f"generation {generation} is {len(fitting)} lives: {[b.data[:30] for b in blocks]}"
        return fitting[0]

    def _check_loss(self, life: Life, told: set[int], generations: list[int]) -> None:
        lost = [place for place in range(len(life.text)) if place not in told]
        gaps = [gap for generation in generations for gap in self._of(generation)]
        if not generations:
            # Nobody ever saw it: of a life between two looks nothing can be known.
            # Two empty files are the same to whoever sees no inodes.
            if life.looked_at and life.text and not life.orphaned and life.late_from != 0:
                assert self._unread_generations, f"life {life.number} was never told"
                self._unread_generations -= 1
            return
        for place in lost:
            covered = any(gap.start <= place and (gap.end is None or place < gap.end) for gap in gaps)
            late = life.broken_off and life.late_from is not None and place >= life.late_from
            assert covered or late or life.excused, (
                f"life {life.number}: byte {place} of {len(life.text)} was lost in silence"
            )
