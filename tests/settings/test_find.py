from __future__ import annotations

from pathlib import Path

from watchd import settings


def a_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_the_file_that_was_asked_for_is_taken_even_where_it_is_missing(tmp_path: Path) -> None:
    asked = tmp_path / "no" / "such.toml"
    assert settings.find(asked, tmp_path) == asked


def test_ones_own_file_comes_before_that_of_the_machine(tmp_path: Path) -> None:
    home, etc = tmp_path / "home", tmp_path / "etc"
    system = a_file(etc / "watchd/watchd.toml")
    assert settings.find(None, home, environment={}, system=etc) == system
    own = a_file(home / ".config/watchd/watchd.toml")
    assert settings.find(None, home, environment={}, system=etc) == own


def test_xdg_config_home_moves_ones_own_place(tmp_path: Path) -> None:
    moved = a_file(tmp_path / "xdg/watchd/watchd.toml")
    a_file(tmp_path / ".config/watchd/watchd.toml")
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert settings.find(None, tmp_path, environment=environment, system=tmp_path / "etc") == moved


def test_a_relative_xdg_config_home_does_not_count(tmp_path: Path) -> None:
    places = settings.usual_places(tmp_path, environment={"XDG_CONFIG_HOME": "xdg"}, system=Path("/etc"))
    assert places == (tmp_path / ".config/watchd/watchd.toml", Path("/etc/watchd/watchd.toml"))


def test_no_file_anywhere_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / ".config/watchd/watchd.toml").mkdir(parents=True)
    assert settings.find(None, tmp_path, environment={}, system=tmp_path / "etc") is None
