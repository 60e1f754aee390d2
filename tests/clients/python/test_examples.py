"""The folders under examples/ are pushed as a user would, and do what they say: ours, and nanoHUB's three servers."""

import base64
import json
import math
import pathlib
import statistics
import zlib

import mcp.types as types
import pytest
from harness import connect, run_program, running

pytestmark = pytest.mark.anyio

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
CALCULATOR = {"add", "subtract", "multiply", "divide", "power"}
ANALYSIS = {"descriptive_stats", "correlation", "linear_regression", "normalize"}
PHYSICS = {"projectile_motion", "harmonic_oscillator", "wave_properties", "ideal_gas", "relativistic_energy"}
OURS = {"add_vat", "count_primes", "draw_bars", "plan_dinner", "word_count", "slugify"}


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A server that has all of them."""
    with running(tmp_path_factory.mktemp("examples")) as server:
        done = run_program("tool", "push", str(EXAMPLES), "--url", server.url, "--token", server.token, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert all(json.loads(line)["saved"] for line in done.stdout.splitlines())
        yield server


def rounded(places, **values):
    """The values as the examples give them."""
    return {name: round(value, places) for name, value in values.items()}


def test_every_folder_is_listed_with_a_description(pushed):
    listed = pushed.tools()
    for name in CALCULATOR | ANALYSIS | PHYSICS | OURS:
        assert listed[name]["description"] and listed[name]["inputSchema"]["type"] == "object", name
    assert listed["add"]["inputSchema"]["required"] == ["a", "b"]
    assert "(e.g., \"1,2,3,4,5\")" in listed["descriptive_stats"]["inputSchema"]["properties"]["data"]["description"]


def test_the_example_of_the_readme_comes_out_to_the_letter(pushed):
    assert pushed.call("add_vat", {"net": 10}).text == '{"net": "10", "rate": "20", "vat": "2.00", "gross": "12.00"}'


async def test_progress_comes_while_primes_are_counted(pushed, mode):
    steps = []

    async def progress(done, total, message):
        steps.append((done, total, message))

    async with connect(pushed, mode) as connection:
        result = await connection.call("count_primes", {"below": 100}, progress_callback=progress)
    assert result.structured == {"primes": 25, "largest": 97}
    assert steps and steps[-1] == (10, 10, "crossed out the multiples of 10")
    assert pushed.call("count_primes", {"below": 0}).structured == {"primes": 0, "largest": None}
    assert pushed.call("count_primes", {"below": -1}).is_error


def test_a_bar_chart_is_a_picture(pushed):
    reply = pushed.rpc("tools/call", {"name": "draw_bars", "arguments": {"values": [1, 2, 4]}})["result"]
    picture, text = reply["content"]
    assert (picture["type"], picture["mimeType"], text["text"]) == ("image", "image/png", "3 bars up to 4")
    data = base64.b64decode(picture["data"])
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    assert {"width": width, "height": height} == reply["structuredContent"]
    start = data.index(b"IDAT")
    pixels = zlib.decompress(data[start + 4 : start + 4 + int.from_bytes(data[start - 4 : start], "big")])
    line = 1 + 3 * width
    assert len(pixels) == height * line
    inked = [sum(pixels[row * line + 1 + 3 * x] != 255 for row in range(height)) for x in (20, 52, 84)]
    assert inked == [36, 72, 144]


@pytest.mark.parametrize(
    ("action", "content", "expected"),
    [
        ("accept", {"guests": 3, "vegetarian": True}, "Buy 3 portions for a vegetarian lasagne."),
        ("decline", None, "Nothing is planned."),
    ],
)
async def test_a_dinner_is_planned_with_the_person(pushed, mode, action, content, expected):
    async def elicit(_context, params):
        assert params.requested_schema["required"] == ["guests"]
        return types.ElicitResult(action=action, content=content)

    async with connect(pushed, mode, elicitation_callback=elicit) as connection:
        assert (await connection.call("plan_dinner", {"dish": "lasagne"})).text == expected


def test_the_examples_in_other_languages(pushed):
    text = "Ein schöner Tag\nund noch einer"
    assert pushed.call("word_count", {"text": text}).text == "line breaks: 1, words: 6, characters: 30"
    assert pushed.call("slugify", {"title": "Ça va? Très bien!"}).text == "ca-va-tres-bien"
    assert pushed.call("slugify", {"title": "abc def", "longest": 4}).text == "abc"


def test_the_calculator(pushed):
    for name, arguments, expected in [
        ("add", {"a": 2, "b": 3}, "5.0"),
        ("add", {"a": 7, "b": 3}, "10.0"),
        ("subtract", {"a": 2, "b": 3}, "-1.0"),
        ("multiply", {"a": 2, "b": 3}, "6.0"),
        ("divide", {"a": 1, "b": 4}, "0.25"),
        ("power", {"base": 2, "exponent": 10}, "1024.0"),
    ]:
        result = pushed.call(name, arguments)
        assert (result.text, result.is_error) == (expected, False), name
    failed = pushed.call("divide", {"a": 1, "b": 0})
    assert (failed.text, failed.is_error) == ("Cannot divide by zero", True)


def test_the_statistics(pushed):
    stats = pushed.call("descriptive_stats", {"data": "10,20,30,40,50"}).structured
    expected = {"count": 5, "mean": 30.0, "median": 30.0, "min": 10.0, "max": 50.0, "range": 40.0, "std": 14.142136, "sum": 150.0}
    assert stats == expected
    perfect = pushed.call("correlation", {"x_data": "1,2,3,4,5", "y_data": "2,4,6,8,10"}).structured
    assert perfect == {"correlation_coefficient": 1.0, "r_squared": 1.0, "covariance": 4.0, "n": 5}
    x, y = [1, 2, 3, 4, 5], [2.1, 3.9, 6.2, 7.8, 10.1]
    slope, intercept = statistics.linear_regression(x, y)
    line = pushed.call("linear_regression", {"x_data": "1,2,3,4,5", "y_data": "2.1, 3.9, 6.2, 7.8, 10.1"}).structured
    assert line == {
        **rounded(6, slope=slope, intercept=intercept, r_squared=statistics.correlation(x, y) ** 2),
        "equation": f"y = {round(slope, 4)}x + {round(intercept, 4)}",
        "n": 5,
    }
    scores = pushed.call("normalize", {"data": "10,20,30,40,50", "method": "zscore"}).structured
    expected = [round((value - 30) / math.sqrt(200), 6) for value in (10, 20, 30, 40, 50)]
    assert scores == {"normalized": expected, "method": "zscore", "mean": 30.0, "std": 14.142136}
    assert pushed.call("normalize", {"data": "10,20,30"}).structured["normalized"] == [0.0, 0.5, 1.0]
    for name, arguments, words in [
        ("correlation", {"x_data": "1,2", "y_data": "1"}, "Datasets must have the same length"),
        ("correlation", {"x_data": "1,1", "y_data": "1,2"}, "Standard deviation is zero"),
        ("linear_regression", {"x_data": "1,1", "y_data": "1,2"}, "Cannot compute regression (x values are constant)"),
        ("normalize", {"data": "1", "method": "other"}, "zscore"),
        ("descriptive_stats", {"data": "a,b"}, "could not convert string to float"),
    ]:
        failed = pushed.call(name, arguments)
        assert failed.is_error and words in failed.text, failed.text


def test_the_motions(pushed):
    thrown = pushed.call("projectile_motion", {"v0": 50, "angle": 45}).structured
    speed, gravity = 50 * math.sqrt(0.5), 9.81
    flight = 2 * speed / gravity
    points = thrown.pop("trajectory")
    assert thrown == rounded(
        3, range=speed * flight, max_height=speed**2 / 2 / gravity, time_of_flight=flight,
        initial_velocity_x=speed, initial_velocity_y=speed,
    )
    assert len(points) == 21 and points[0] == {"t": 0.0, "x": 0.0, "y": 0.0} and abs(points[-1]["y"]) < 0.01
    omega = math.sqrt(20 / 0.5)
    place = 0.1 * math.cos(omega)
    arguments = {"mass": 0.5, "spring_constant": 20, "amplitude": 0.1, "time": 1.0}
    assert pushed.call("harmonic_oscillator", arguments).structured == rounded(
        6, position=place, velocity=-0.1 * omega * math.sin(omega), acceleration=-40 * place, angular_frequency=omega,
        period=2 * math.pi / omega, frequency=omega / 2 / math.pi, kinetic_energy=0.1 - 10 * place**2,
        potential_energy=10 * place**2, total_energy=0.1,
    )


def test_the_waves_the_gas_and_the_fast_mass(pushed):
    light = pushed.call("wave_properties", {"frequency": 5e14}).structured
    assert light["speed"] == 299792458 and light["wavelength"] == round(299792458 / 5e14, 9)
    assert light["photon_energy_eV"] == round(6.62607015e-34 * 5e14 / 1.602176634e-19, 6)
    sound = pushed.call("wave_properties", {"frequency": 440, "medium_speed": 343}).structured
    assert (sound["wavelength"], sound["period"]) == (round(343 / 440, 9), round(1 / 440, 9))
    gas = pushed.call("ideal_gas", {"volume": 0.0224, "n_moles": 1, "temperature": 273.15}).structured
    pressure = 8.314462 * 273.15 / 0.0224
    assert gas == {
        "pressure_Pa": round(pressure, 3), "pressure_atm": round(pressure / 101325, 6), "volume_m3": 0.0224,
        "volume_L": 22.4, "n_moles": 1, "temperature_K": 273.15, "temperature_C": 0.0,
    }
    back = pushed.call("ideal_gas", {"pressure": pressure, "volume": 0.0224, "n_moles": 1}).structured
    assert back["temperature_K"] == 273.15
    wrong = pushed.call("ideal_gas", {"volume": 1})
    assert wrong.is_error and wrong.text == "Provide exactly 3 of: pressure, volume, n_moles, temperature"
    light_speed = 299792458
    fast = pushed.call("relativistic_energy", {"rest_mass": 2, "velocity": 0.6 * light_speed}).structured
    assert (fast["lorentz_factor"], fast["beta"]) == (1.25, 0.6)
    assert fast["total_energy_J"] == pytest.approx(2.5 * light_speed**2)
    assert fast["kinetic_energy_J"] == pytest.approx(0.5 * light_speed**2)
    assert fast["momentum_kg_m_s"] == pytest.approx(1.5 * light_speed)
    assert pushed.call("relativistic_energy", {"rest_mass": 1, "velocity": 3e8}).is_error


def test_the_resources(pushed):
    listed = {one["uri"]: one for one in pushed.rpc("resources/list", {})["result"]["resources"]}
    assert listed["config://calculator/settings"]["name"] == "get_settings"

    def read(uri):
        (part,) = pushed.rpc("resources/read", {"uri": uri})["result"]["contents"]
        assert (part["uri"], part["mimeType"]) == (uri, "application/json")
        return json.loads(part["text"])

    assert read("config://calculator/settings") == {
        "precision": 10, "max_value": 1e308, "supported_operations": ["add", "subtract", "multiply", "divide", "power"],
    }
    year = read("data://samples/temperatures")
    assert year["data"] == [2.1, 3.5, 7.2, 12.1, 17.3, 21.5, 24.2, 23.8, 19.4, 13.2, 7.1, 3.2]
    assert (year["labels"][0], year["labels"][11], len(year["labels"])) == ("Jan", "Dec", 12)
    assert read("data://samples/scatter")["y"] == [52, 58, 65, 68, 72, 78, 82, 85, 90, 95]
    constants = read("constants://physics")
    assert constants["planck_constant"]["value"] == 6.62607015e-34 and len(constants) == 9
    assert constants["speed_of_light"] == {"value": 299792458, "unit": "m/s", "symbol": "c"}
    assert set(read("config://simulator/settings")["supported_simulations"]) == PHYSICS


def test_the_prompts(pushed):
    for name, argument, value, expected in [
        ("calculate", "expression", "2+2", "Please calculate: 2+2"),
        ("analyze_data", "data", "1,2", "Please analyze this dataset and provide insights: 1,2"),
        ("physics_problem", "problem_description", "A ball falls.", "Please solve this physics problem step by step: A ball falls."),
    ]:
        got = pushed.rpc("prompts/get", {"name": name, "arguments": {argument: value}})["result"]
        assert got["messages"] == [{"role": "user", "content": {"type": "text", "text": expected}}]
        assert pushed.rpc("prompts/get", {"name": name})["error"]["code"] == -32602
