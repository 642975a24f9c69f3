"""What is seen of a page in HTML: its text with its headings, and nothing of what stands around it."""

import pytest
from bs4 import BeautifulSoup
from documents import PAGE, shown
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.base.notes import listening
from pyramidions.documents.page_text import page_text
from pyramidions.text.outline import outline

FLY = "<p>Bees fly.</p>"
SIX = " | ".join(["Bees fly."] * 6)
VISIBLE = [
    ("<h1>Title</h1><p>One\ntwo.<p>Three.", "# Title | One two. | Three."),
    ("<h2 id=a>A <b>b</b><br>c</h2>text<h6>d</h6>", "## A b c | text | ###### d"),
    ("<table><tr><td>a<td>b<tr><td>c</td></table>d<p>e<br>f", "a b | c | d | e | f"),
    ("<pre>a\nb</pre>c<br>d", "a | b | c | d"),
    ("<p>H<sub>2</sub>O <h3>e</h3><div>f<div>g", "H2O | ### e | f | g"),
    # Tables with headers, listings and figures hold no sentences.
    ("a<table><tr><th>b<tr><td>c</table>d", "a | d"),
    ("<table><tr><td>a<table><tr><th>b<tr><td>c</table>d</table>e", "a | d | e"),
    ("<table><thead><tr><td>a</table><th>b", "a | b"),
    ("a<pre><code>b\nc</code></pre>d <code>e</code> f", "a | d e f"),
    ("a<figure><img alt=x><figcaption>b</figcaption></figure>c<table><tr><th>b", "a | c"),
    ('<div class="highlight"><pre><span>fly()</span> <span># now</span></pre></div>' + FLY, "Bees fly."),
    ('<pre class="programlisting">fly() # now</pre><pre><span>Bees</span> fly.</pre>', "Bees fly."),
    # An end closes what was left open inside, and the end of a head may be left out.
    (PAGE, "One two | three."),
    ("<div><nav>menu<p>more</div>text", "text"),
    ("<head><title>No</title><body>text", "text"),
    ("1 < 2 &amp; 3 > 2", "1 < 2 & 3 > 2"),
    ("<![if IE]>a<![endif]--><![what[b]]>c<!-- no -->", "ac"),
    ("<script>if (a < b) {</script>text<style>", "text"),
    ("<", "<"),
    ("<b>B<gene>RCA</gene>1</b> <cit> <gene>p53</gene>, <time>now</time>.", "BRCA1 p53, now."),
    # Struck text, formulas in lines of their own, and those that pictures show.
    ("<p>It costs <s>10,80€</s><strike>9€</strike><del>8€</del> <ins>4,80€</ins>.", "It costs 4,80€."),
    ("<p>So<dl><dd><math><mi>x</mi></math>.</dd></dl><p>It is <math> <mi>x</mi> <mn>2</mn> </math>.", "So | It is x2."),
    ("<p>Of <span class=mwe-math-mathml-inline style='display: none'><math><mi>x</mi></math></span>.", "Of x."),
    ("<p><ruby>蜂<rp>(</rp><rt>はち</rt><rp>)</rp></ruby>は飛ぶ", "蜂は飛ぶ"),
    # Marks of notes and of references, and links to edit.
    (
        '<p>Live.<sup class="reference"><a href="#a">[1]</a></sup> Wax<sup>[<i><a>citation needed</a></i>]</sup> is.',
        "Live. Wax is.",
    ),
    (
        "<h2>History<span class=mw-editsection><span>[</span><a>edit</a><span>]</span></span></h2>" + FLY,
        "## History | Bees fly.",
    ),
    (
        "<p>In winter.<sup>1</sup> They hum<sup>2,3</sup> in May.<sup>[4]</sup> Of 9 m<sup>2</sup>.",
        "In winter. They hum in May. Of 9 m2.",
    ),
    (
        '<p>A.<a epub:type="noteref" href="#n">3</a> B.<a role=doc-noteref>[4]</a> C<sup class=footnote-ref>a</sup>.',
        "A. B. C.",
    ),
    (
        "<p>Fly<sup><a>1</a>, <a>2</a></sup> in 1998<sup><a>3</a></sup>, 1<sup>er</sup> N<sup>o</sup> 5.",
        "Fly in 1998, 1er No 5.",
    ),
    ("<p>He sings.<sup>a</sup> Hums<sup>†</sup> 2<sup>3</sup>. Mag.<sup>a</sup> B.", "He sings. Hums 2^3. Mag.a B."),
    # What stands around the text.
    (f"<header><h1>Site</h1></header><aside>Buy honey.</aside>{FLY}<footer>By us.</footer>", "Bees fly."),
    (f"<main><header><p>By us.</p></header>{FLY}</main>", "By us. | Bees fly."),
    (f"<site-navigation><p>Next topic</p></site-navigation><app-nav-bar>Home</app-nav-bar>{FLY}", "Bees fly."),
    ('<div class="sphinxsidebar big">Next</div><div role="navigation">Next topic</div>' + FLY, "Bees fly."),
    (f"<p hidden>No.</p><p style='display: none'>No.</p><b aria-hidden=true>x</b>{FLY}", "Bees fly."),
    ("<p style='backface-visibility:hidden' id=cookies>Bees fly.</p>", "Bees fly."),
    (f"<button>Go</button><select><option>One</option></select>{FLY}", "Bees fly."),
    (f"<div class=toctree-wrapper><ul><li><a>Next</a></li></ul></div>{FLY}", "Bees fly."),
    (f"<div class=toctree-wrapper><section>{FLY}</section></div>", "Bees fly."),
    ('<div id="cookie-banner"><p>We use cookies.</p></div><div role="dialog">No.</div>' + FLY, "Bees fly."),
    # Below a text, where there is less than in it: a page of comments is read.
    (f"{FLY * 6}<section id=comments><p>I doubt it.</section><div class='related-posts'>More</div>", SIX),
    (f"{FLY * 6}<form><label>Your name</label></form><form id=commentform>Write one.</form>", SIX),
    ("<section id=comments><p>I doubt it.</p><p>I do not.</section>", "I doubt it. | I do not."),
    (f"<dialog>Enter terms.</dialog><div class='api_metadata'>Added in: v0.1.7</div>{FLY}", "Bees fly."),
    ('<body class="nav"><section id="changelog">Bees fly.</section>', "Bees fly."),
    ('<h1>A<a class="headerlink" href="#b">#</a></h1><h1>B<a href="#b">¶</a></h1>' + FLY, "# A | # B | Bees fly."),
    ("<p>It is as &sect; 910 and <b>§</b> 12 say.</p>", "It is as § 910 and § 12 say."),
    ('<p><a href="b">Download the ebook</a></p><p><a href="b">Bees fly.</a></p>', "Bees fly."),
    ('<ul><li><a href="b">Bees</a> fly fast</li><li><a href="w">Wasps</a></li></ul>', "Bees fly fast"),
    ('<table><tr><td><a href="b">Next</a><table><tr><th>a</th></tr></table>Bees fly.</table>', "Bees fly."),
]


@pytest.mark.parametrize(
    "names",
    [
        "class='hide-on-button eu-cookie-law'",
        "class=m159-cookies-info",
        "id=gdprConsent",
        "class='white-popup-block mfp-hide login-form'",
        "class=f-text--signup",
        "class='widget_text textwidget custom-html-widget'",
        "id=mc_embed_subscribe",
        "class=author-description",
        "class='mh-author-box'",
        "class=portal-breadcrumbs",
        "class='entry-meta small'",
        "class=articleMetadata",
        "class=sectionRelated",
        "class=most-read",
        "class='site-footer'",
        "class=wp-caption",
        "id=recent-posts-2",
        "class=shariff",
        "class=d-none",
        "class=hatnote",
        "role=search",
        "id=kommentare",
        "class=reflist",
        "class=kommentar-liste",
    ],
)
@pytest.mark.parametrize("tag", ["div", "section", "ul"])
def test_small_blocks_named_so_are_no_text(tag: str, names: str) -> None:
    assert shown(page_text(f"{FLY * 5}<{tag} {names}><p>We are here.</p></{tag}>{FLY}")) == " | ".join(
        ["Bees fly."] * 6
    )


@pytest.mark.parametrize(("html", "lines"), VISIBLE, ids=[html[:32] for html, _ in VISIBLE])
def test_the_text_of_a_page_is_what_is_seen_of_it(html: str, lines: str) -> None:
    found = page_text(html)
    assert shown(found) == lines
    assert found.split() == [word for word in lines.split() if word.strip("#|")]


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        (f"<footer><div>By us.</footer></div>{FLY}", "By us. | Bees fly."),
        (f"<div><footer><div>By us.</footer></div>{FLY}</div>", "By us. | Bees fly."),
        (f"<button>Menu{FLY}", "Menu | Bees fly."),
        (f"{FLY}<div><button>Menu{FLY * 2}</div>{FLY}", "Bees fly. | Menu | Bees fly. | Bees fly. | Bees fly."),
        ("<select><option>A<option>B<p>Bees fly.</p>", "A B | Bees fly."),
        (f"<svg><g><title>x</svg>{FLY}", "x | Bees fly."),
        (f"<figure><img><figcaption>A bee{FLY}", "A bee | Bees fly."),
        (f"<title>No</title><div><textarea>x</div>{FLY}", "x | Bees fly."),
        # What ends is no text beside it.
        (f"{FLY}{'<figure><figcaption>A bee</figure>' * 3}<figure><img>{FLY * 5}", SIX),
        # One that ends holds no text, and neither does a small one.
        (f"<footer>By us and them.</footer>{FLY}", "Bees fly."),
        (f"<div>{FLY * 6}<label>Name</div>", SIX),
        ("<script>fly() // for us</div>", ""),
    ],
)
def test_a_region_without_an_end_hides_nothing_below_it(html: str, lines: str) -> None:
    assert shown(page_text(f"<body>{html}</body>")) == lines


LONG = FLY * 200
PROSE = "<p>Bees fly to the old tree in spring.</p>"
GOES_ON = [
    f"<article><h1>A</h1><section><h2>B</h2>{PROSE * 20}</section><section><h2>C</h2>{PROSE * 4}</section></article>",
    f"<main><div><h2>B</h2>{PROSE * 20}</div><div><h2>C</h2>{PROSE * 4}</div></main>",
    f"<div><div>{PROSE * 20}</div><div>{PROSE}<h2>C</h2>{PROSE * 2}</div><div><h2>D</h2>{PROSE}</div></div>",
    f"<h1>A</h1><div>{PROSE * 20}</div><div class=list><h2>C</h2><ul>{'<li>Bees fly to wax</li>' * 4}</ul></div>",
    f"<div>{PROSE * 20}</div><h2>C</h2>{PROSE * 4}",
    f"<article><div>{PROSE * 20}</div><div>{PROSE * 4}</div></article>",
    f"<main><div><div>{PROSE * 20}</div></div><div><div><h2>C</h2>{PROSE * 4}</div></div></main>",
]


@pytest.mark.parametrize(
    ("html", "count"),
    [
        # Readers' letters, teasers and what a site says of its writers stand below the block that holds the prose.
        (f"<div><div>{PROSE * 20}</div><div>{PROSE * 4}</div></div>", 20),
        (f"<div>{PROSE * 20}</div><ul>{'<li><b>Wasps</b> ' + PROSE + '</li>'}</ul>", 20),
        (f"<article>{PROSE * 20}</article>{PROSE}", 20),
        # Comments may be longer than the text, but a page of comments is read.
        (f"<div>{PROSE * 3}<ol class=comment-list>{PROSE * 20}</ol></div>", 3),
        (f"<div>{PROSE}<ol class=comment-list>{PROSE * 20}</ol></div>", 21),
        (f"<div>{PROSE * 3}<ol class=related>{PROSE * 20}</ol></div>", 23),
        # An opinion of the writers is none of the readers.
        (f"<h1>Bees</h1><div class='artikel kommentar'>{PROSE * 3}</div><div>{PROSE * 8}</div>", 11),
        # It goes on below a heading, with sentences or a list, but not below one of another text or of readers.
        *((html, 24) for html in GOES_ON),
        (f"<div>{PROSE * 20}</div><div><h3><a>Wasps</a></h3>{PROSE * 4}</div>", 20),
        (f"<div>{PROSE * 20}</div><div class=related><h3>Wasps</h3>{PROSE * 4}</div>", 20),
        (f"<article>{PROSE * 20}</article><div><h3>Wasps</h3>{PROSE * 4}</div>", 20),
        # What stands above it stays, from the title on.
        (f"{PROSE}<h1>Bees</h1>{PROSE}<div>{PROSE * 20}</div>{PROSE}", 21),
        (f"{PROSE}<div>{PROSE * 20}</div>", 21),
        # No block holds so much: each is of the text.
        (f"<div>{PROSE * 20}</div><div>{PROSE * 10}</div>", 30),
        (f"<div>{PROSE * 3}<div>{PROSE}</div><div>{PROSE}</div></div>", 5),
        # Neither a paragraph nor an item is a block.
        (f"<p>{'Bees fly to the old tree in spring. ' * 20}</p>{PROSE}", 21),
        # Most of a page is not what stands beside its text.
        (f"<div>{PROSE * 4}</div>{'<p>A wasp, too.</p>' * 60}", 4),
        # A box of another name in it does not count.
        (f"<div><div class=newsletter>{PROSE * 9}</div><div>{PROSE * 20}</div></div><div>{PROSE * 5}</div>", 20),
    ],
)
def test_what_stands_beside_the_block_that_holds_most_of_the_prose_is_left_out(html: str, count: int) -> None:
    found = str(page_text(f"<body>{html}</body>"))
    assert found.count("Bees fly to") == count
    assert found.count("A wasp, too.") == (60 if "A wasp" in html else 0)


@pytest.mark.parametrize(
    ("html", "count"),
    [
        (f"<header><div><h1>Bees</header>{LONG}", 200),
        (f"<aside><div>{LONG}", 200),
        (f"<nav><ul><a>Next</a></ul>{LONG}<footer>By us.", 200),
        (f"<noscript>{LONG}</noscript>", 200),
        (f"<div style='display:none'>{LONG}</div>", 200),
        (f"<aside>{LONG}</aside>{FLY * 20}", 20),
        # A main part is none of what holds it, and one sentence is better than none.
        (f"<header><div>Logo</header><main>{FLY}</main>", 1),
        ("<nav>Home<p>Bees fly. They fly to the old tree.", 1),
        ("<noscript>Bees fly. You need to enable scripts.</noscript>", 0),
        (f"<footer>{LONG}</footer>", 0),
        (f"<nav>{'<a>Bees fly.</a> ' * 200}</nav>", 0),
        (f"<noscript>{FLY}</noscript><div id=root></div>", 0),
    ],
)
def test_a_page_with_all_of_its_text_in_what_is_left_out_is_read_and_told(html: str, count: int) -> None:
    notes: list[str] = []
    with listening(notes.append):
        assert str(page_text(html, "a.html")).count("Bees fly.") == count
    assert len(notes) == (count == 200 or html.startswith("<nav>Home"))


def elements(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inside).map("".join)
    return st.tuples(st.sampled_from(["nav", "div"]), parts).map(lambda of: f"<{of[0]}>{of[1]}</{of[0]}>")


# Of tags that cross, and of a paragraph in a paragraph, each parser makes another tree.
LEAVES = ["<b>x</b>", "<br>", "<svg/>", "x", " ", "&lt;", "<p>x</p>", "<p></p>", "<p><b>x</b> x</p>"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.recursive(st.sampled_from(LEAVES), elements)))
def test_the_text_of_a_page_is_that_of_its_tree(parts: list[str]) -> None:
    soup = BeautifulSoup("".join(parts), "html.parser")
    for element in soup(["nav", "svg"]):
        element.decompose()
    # Which tags end a word, a tree does not tell.
    assert "".join(page_text("".join(parts)).split()) == "".join(soup.get_text().split())


def test_the_outline_of_a_page_has_its_sections_and_whole_sentences() -> None:
    page = (
        "<h1>A paper</h1><h2>Methods</h2><p>We measured\nit. It was long.</p><p>Why<h2>Results</h2><ul><li>One.<li>Two."
    )
    found = outline(page_text(page))
    assert found.headings == ("", "Methods", "Results")
    assert found.sections == [[], ["We measured it.", "It was long.", "Why"], ["One.", "Two."]]
    # A line break and unknown tags end no sentence.
    page = "<p>We found<br>that <gene>BRCA1</gene> is\nhigh <cit> .<br><br>So it is.</p>"
    assert outline(page_text(page)).sections == [["We found that BRCA1 is high .", "So it is."]]
    # Marks in the text make no heading.
    page = "<h1>A</h1><p># one</p><h2>B</h2><p>two<br>===</p><h2>C</h2><p>```</p><p>three."
    found = outline(page_text(page))
    assert [unit.text for unit in found.units if unit.is_heading] == ["A", "B", "C"]
    assert [unit.text for unit in found.sentences] == ["# one", "two ===", "```", "three."]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<a " * 100_000, 0),
        ("<!--" * 200_000, 0),
        ("<p " + " ".join(f"a{n}=b" for n in range(100_000)) + ">x", 1),
        ("</" * 300_000, 0),
        ("<![CDATA[" * 100_000, 0),
        ("<script>" + "</" * 300_000, 0),
        ("<i>" * 1000 + "</b>" * 100_000 + "x", 1),
        ("<p>x</div>" * 20_000, 20_000),
        ("<div class=bio><p>x</p></div>" * 50_000, 50_000),
        ("<div class=bio>x</div><p>x y</p>" * 40_000, 80_000),
        ("<div class='" + "has-" * 500_000 + "'>x", 1),
        ("<script src=mathjax></script>" + "<p>See \\\\(this</p>" * 20_000 + "\\\\[" * 100_000, 40_001),
    ],
    ids=lambda part: part[:9] if isinstance(part, str) else "",
)
@pytest.mark.timeout(10)
def test_a_page_made_to_take_long_does_not(page: str, words: int) -> None:
    # The standard library's parser took minutes for most of these.
    assert len(page_text(page).split()) == words
