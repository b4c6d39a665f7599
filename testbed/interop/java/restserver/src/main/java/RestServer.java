import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * RestServer DIR [KEY=VALUE ...]: the REST catalog of the Java project's own tests, which its fixture image runs, over a
 * JdbcCatalog. http://…/NAME/v1/… is the catalog NAME: it is made by the first client that asks for its configuration, in the
 * warehouse which that client names. KEY=VALUE are properties of every catalog. The server ends with its standard input.
 */
public class RestServer extends HttpServlet {
  private final String dir;
  private final Map<String, String> properties;
  private final Map<String, RESTCatalogServlet> catalogs = new HashMap<>();

  private RestServer(String dir, Map<String, String> properties) {
    this.dir = dir;
    this.properties = properties;
  }

  private synchronized RESTCatalogServlet catalog(String name, String warehouse) throws ServletException {
    RESTCatalogServlet made = catalogs.get(name);
    if (made != null) return made;
    if (warehouse == null) throw new ServletException("catalog " + name + ": its first client names no warehouse");
    Map<String, String> p = new HashMap<>(properties);
    p.put("uri", "jdbc:sqlite:" + dir + "/" + name + ".db");
    p.put("warehouse", warehouse);
    p.put("jdbc.schema-version", "V1");
    p.put("io-impl", warehouse.startsWith("s3:") ? "org.apache.iceberg.aws.s3.S3FileIO" : "org.apache.iceberg.hadoop.HadoopFileIO");
    JdbcCatalog c = new JdbcCatalog();
    c.setConf(new Configuration());
    c.initialize("default", p);
    made = new RESTCatalogServlet(new RESTCatalogAdapter(c));
    catalogs.put(name, made);
    return made;
  }

  @Override
  protected void service(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
    String path = request.getRequestURI();
    int slash = path.indexOf('/', 1);
    if (slash < 0 || !path.substring(1, slash).matches("[A-Za-z0-9_]+")) {
      response.sendError(HttpServletResponse.SC_NOT_FOUND);
      return;
    }
    String rest = path.substring(slash);
    HttpServletRequest inner =
        new HttpServletRequestWrapper(request) {
          @Override
          public String getRequestURI() {
            return rest;
          }
        };
    catalog(path.substring(1, slash), request.getParameter("warehouse")).service((ServletRequest) inner, response);
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    for (int i = 1; i < args.length; i++) {
      int eq = args[i].indexOf('=');
      properties.put(args[i].substring(0, eq), args[i].substring(eq + 1));
    }
    ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    handler.addServlet(new ServletHolder(new RestServer(args[0], properties)), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(handler);
    server.start();
    System.out.println("listening on " + server.getURI());
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
